// SPDX-License-Identifier: Apache-2.0
/// The decoder turns PTX instructions into micro-ops: registers get their places, constants and special
/// registers become operands, symbols become addresses.
#pragma once

#include <cstdint>
#include <map>
#include <utility>
#include <vector>

#include "ground/base/result.h"
#include "kernels/ptx/ir.h"
#include "softgpu/interpreter/memory_access.h"
#include "softgpu/interpreter/micro_op.h"
#include "softgpu/interpreter/operations.h"

namespace firebreak::softgpu {

/// The address of every variable, in its state space: by module variable, and by function and its variable.
struct AddressLayout {
  std::vector<std::uint64_t> module_variables;
  std::vector<std::vector<std::uint64_t>> function_variables;
};

/// Constants as 32 equal lanes, each kept once.
class ConstantPool {
 public:
  /// `width_bits` 1: a predicate, as a mask.
  OperandReference add(std::uint32_t width_bits, std::uint64_t value);
  std::vector<std::uint64_t> take() { return std::move(words_); }

 private:
  std::vector<std::uint64_t> words_;
  std::map<std::pair<std::uint32_t, std::uint64_t>, std::uint32_t> offsets_;
};

/// This says where a function's registers and parameters lie in its frame memory.
struct FrameLayout {
  std::vector<OperandReference> registers;
  OperandReference carry;  ///< the carry flag, a predicate
  std::uint32_t registers_end = 0;
  std::uint32_t return_offset = 0;    ///< The offset is in a lane's parameter memory.
  std::uint32_t argument_offset = 0;  ///< the same, of the argument area
  std::uint32_t parameter_stride = 0;
  explicit FrameLayout(const ptx::Function& function);
};

/// Bits of a register of that type; 1 for predicates.
std::uint32_t width_of(ptx::Type type);

/// Decodes one function. The parts of this class that know instructions are in decode_*.cpp, by subject.
class FunctionDecoder {
 public:
  FunctionDecoder(const ptx::Module& module, std::uint32_t function, const AddressLayout& addresses,
                  ConstantPool& constants);
  Result<FunctionCode> decode();

  // The decoders of single instructions use these.
  const ptx::Module& module() const { return module_; }
  const ptx::Function& function() const { return function_; }
  const FrameLayout& frame() const { return frame_; }
  FunctionCode& code() { return code_; }

  /// Appends a micro-op with the guard and flags of the instruction. The reference is good until the next
  /// emit.
  MicroOp& emit(Execute execute, const ptx::Instruction& instruction);
  /// A register for one instruction's intermediate value.
  OperandReference temporary(std::uint32_t width_bits);
  OperandReference constant(std::uint32_t width_bits, std::uint64_t value) {
    return constants_.add(width_bits, value);
  }
  OperandReference register_place(std::uint32_t index) const { return frame_.registers[index]; }
  std::uint32_t register_width(std::uint32_t index) const {
    return width_of(function_.registers[index].type);
  }

  /// An operand to read, `width_bits` wide; may emit micro-ops that bring it there.
  Result<OperandReference> source(const ptx::Instruction& instruction, const ptx::Operand& operand,
                                  std::uint32_t width_bits);
  Result<OperandReference> element_source(const ptx::VectorElement& element, std::uint32_t width_bits);
  /// An operand to write; finish() must follow the micro-op, for registers wider than the value.
  Result<OperandReference> destination(const ptx::Instruction& instruction, const ptx::Operand& operand,
                                       std::uint32_t width_bits, bool is_signed);
  void finish(const ptx::Instruction& instruction);
  /// The address of a symbol as a number; false for `relative` when it does not depend on the frame.
  Result<std::uint64_t> address_of(const ptx::Instruction& instruction, const ptx::Symbol& symbol,
                                   bool& relative);

  /// One micro-op of a lane operation, operands in order.
  Status emit_selected(const ptx::Instruction& instruction, const Selected& selected);
  void jump_to(std::uint32_t instruction_index) {
    jumps_.emplace_back(code_.code.size() - 1, instruction_index);
  }
  tl::unexpected<Error> unsupported(const ptx::Instruction& instruction, const std::string& why = {}) const;

 private:
  struct Widening {
    OperandReference from, to;
    std::uint32_t from_bits, to_bits;
    bool is_signed;
  };
  Status decode_instruction(const ptx::Instruction& instruction);
  void resize(const ptx::Instruction& instruction, const Widening& how);
  Result<OperandReference> special(const ptx::Instruction& instruction, ptx::SpecialRegister which,
                                   std::uint32_t width_bits);
  Result<OperandReference> symbol_source(const ptx::Instruction& instruction, const ptx::Operand& operand,
                                         std::uint32_t width_bits);
  void patch_jumps(const std::vector<std::uint32_t>& starts);

  const ptx::Module& module_;
  const std::uint32_t function_index_;
  const ptx::Function& function_;
  const AddressLayout& addresses_;
  ConstantPool& constants_;
  FrameLayout frame_;
  FunctionCode code_;
  std::uint32_t registers_end_;
  std::map<std::uint32_t, std::vector<OperandReference>> temporaries_;  ///< by width
  std::map<std::uint32_t, std::size_t> temporaries_used_;               ///< by the current instruction
  std::vector<Widening> widenings_;                                     ///< that finish() owes
  std::vector<std::pair<std::size_t, std::uint32_t>> jumps_;            ///< micro-op to instruction
};

/// A decoder of one family; an opcode without one is a lane operation.
using DecodeFunction = Status (*)(FunctionDecoder&, const ptx::Instruction&);
DecodeFunction find_lane_decoder(ptx::Opcode opcode);     ///< decode_lanes.cpp
DecodeFunction find_memory_decoder(ptx::Opcode opcode);   ///< decode_memory.cpp
DecodeFunction find_control_decoder(ptx::Opcode opcode);  ///< decode_control.cpp
DecodeFunction find_warp_decoder(ptx::Opcode opcode);     ///< decode_warp.cpp

}  // namespace firebreak::softgpu
