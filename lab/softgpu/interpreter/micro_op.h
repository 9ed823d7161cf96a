// SPDX-License-Identifier: Apache-2.0
/// The decoded form of PTX: compact micro-operations, each a handler and where its operands lie.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

#include "kernels/ptx/ir.h"

namespace firebreak::softgpu {

struct Warp;
struct MicroOp;

/// One bit a lane of a warp.
using LaneMask = std::uint32_t;
inline constexpr int warp_lanes = 32;
inline constexpr LaneMask all_lanes = 0xFFFF'FFFF;

/// Runs one micro-op for the active lanes; returns the next one, or null to hand control to the warp
/// scheduler, which then looks at the warp's `leave` reason.
using Execute = const MicroOp* (*)(Warp&, const MicroOp*);

/// The host memory of a memory instruction's lanes.
using LaneHosts = std::array<std::byte*, warp_lanes>;
/// A memory instruction does this once every address has proved good.
using Transfer = void (*)(Warp&, const MicroOp&, LaneMask, const LaneHosts&);

/// The memory an operand's lanes lie in.
enum class OperandBase : std::uint32_t { Frame, Constants, Specials };

/// An operand's 32 lanes lie at a base and a byte offset, a multiple of 4. A register of n bits is 32
/// consecutive values of n bits; a predicate is one LaneMask.
struct OperandReference {
  std::uint32_t packed = 0;

  OperandReference() = default;
  OperandReference(OperandBase base, std::uint32_t offset)
      : packed(offset | static_cast<std::uint32_t>(base)) {}
  std::uint32_t base() const { return packed & 3U; }
  std::uint32_t offset() const { return packed & ~3U; }
};

/// Flags of a micro-op.
enum MicroOpFlag : std::uint16_t {
  flush_subnormals = 1U << 0,
  saturate = 1U << 1,
  saturate_finite = 1U << 2,
  relu = 1U << 3,
  propagate_nan = 1U << 4,
  xor_sign = 1U << 5,
  carry_out = 1U << 6,
  narrow_address = 1U << 7,        ///< the address register has 32 bits
  frame_relative = 1U << 8,        ///< the address is relative to the frame's part of local memory
  second_narrow_address = 1U << 9  ///< cp.async: the same, of the source
};

struct MicroOp {
  Execute execute = nullptr;
  Transfer transfer = nullptr;
  std::array<OperandReference, 8> operands;  ///< destination first, unless the handler says otherwise
  std::uint64_t immediate = 0;
  OperandReference guard;
  LaneMask guard_invert = 0;  ///< xor for the guard's mask
  std::uint16_t flags = 0;
  bool guarded = false;
  std::uint8_t negated = 0;  ///< bit i: predicate operand i is read inverted
  ptx::Rounding rounding = ptx::Rounding::None;
  std::uint8_t arity = 1;        ///< vector elements of a memory access
  std::uint8_t access_log2 = 0;  ///< memory access: log2 of its bytes, all elements together
  std::int32_t detail = 0;       ///< The handler reads it.
  std::int32_t jump = 0;         ///< branch: distance in micro-ops; call: index of the call site

  bool has(MicroOpFlag flag) const { return (flags & flag) != 0; }
};

/// One value handed over by a call, from the caller's frame to the callee's or back.
struct CallValue {
  enum class Place : std::uint8_t { Register, Parameter };
  Place caller = Place::Register;
  Place callee = Place::Parameter;
  OperandReference caller_register;
  OperandReference callee_register;
  std::uint32_t caller_offset = 0;  ///< The offset is in the caller's parameter memory.
  std::uint32_t callee_offset = 0;  ///< The offset is in the callee's parameters or return parameters.
  std::uint32_t size_bytes = 0;
};

struct CallSite {
  std::uint32_t function_index = ptx::no_index;  ///< direct
  OperandReference target;                       ///< indirect: a 64-bit register
  std::vector<CallValue> arguments;
  std::vector<CallValue> returns;
};

/// One function, decoded. Frame memory: predicates, registers, then parameter memory, lane after lane.
struct FunctionCode {
  std::string name;
  std::vector<MicroOp> code;
  std::vector<std::uint32_t> lines;  ///< PTX line of each micro-op
  std::uint32_t register_count = 0;
  std::uint32_t frame_bytes = 0;
  std::uint32_t parameter_base = 0;    ///< The offset is lane 0's, in frame memory.
  std::uint32_t parameter_stride = 0;  ///< The stride leads from lane to lane: parameters, return parameters,
                                       ///< argument area.
  std::uint32_t return_offset = 0;     ///< This is the offset of the return parameters in a lane's parameter
                                       ///< memory.
  std::uint32_t local_bytes = 0;       ///< .local variables of one thread
  std::vector<CallSite> call_sites;
  std::vector<std::vector<std::int32_t>> branch_tables;  ///< micro-op indices
};

/// A module's code; handlers reach it through the warp.
struct ModuleCode {
  std::vector<FunctionCode> functions;   ///< The index is ptx::Module's; a function without code is only
                                         ///< declared.
  std::vector<std::uint64_t> constants;  ///< OperandBase::Constants points at this.
};

}  // namespace firebreak::softgpu
