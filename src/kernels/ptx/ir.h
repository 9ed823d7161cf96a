// SPDX-License-Identifier: Apache-2.0
/// A parsed PTX module: plain data, every name resolved to an index. Immutable after parsing; safe to share.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <limits>
#include <string>
#include <string_view>
#include <vector>

#include "kernels/ptx/opcode.h"
#include "kernels/ptx/types.h"

namespace firebreak::ptx {

/// A place in the PTX text; both count from 1.
struct SourceLocation {
  std::uint32_t line = 0;
  std::uint32_t column = 0;
};

/// "Nothing" for every index below.
inline constexpr std::uint32_t no_index = std::numeric_limits<std::uint32_t>::max();

/// The meaning of a name, and its index in the vector of that kind.
enum class SymbolKind : std::uint8_t {
  None,
  ModuleVariable,    ///< Module::variables
  FunctionVariable,  ///< Function::variables of the function around it
  Parameter,         ///< Function::parameters of the function around it (in .param space)
  ReturnParameter,   ///< Function::return_parameters of the function around it (in .param space)
  Function,          ///< Module::functions
};
struct Symbol {
  SymbolKind kind = SymbolKind::None;
  std::uint32_t index = no_index;
};

enum class Linkage : std::uint8_t { Internal, Visible, Extern, Weak, Common };

/// An address inside initial data: `symbol` + `addend`, shifted right by `shift_bits` (the mask operator:
/// 0xFF00(x) has 8), its low `size_bytes` stored at `offset_bytes`.
struct Relocation {
  std::uint64_t offset_bytes = 0;
  std::uint32_t size_bytes = 0;
  std::uint32_t shift_bits = 0;
  bool generic = false;  ///< generic(symbol): the generic address, not the one in the symbol's state space
  Symbol symbol;         ///< a ModuleVariable or a Function
  std::int64_t addend = 0;
};

/// A variable in memory, of the module or of a function (there: .shared, .local, .param for calls, static
/// .global and .const).
struct Variable {
  std::string name;  ///< a function's block-scoped names may repeat
  Linkage linkage = Linkage::Internal;
  StateSpace space = StateSpace::None;
  Type type = Type::None;          ///< type of an element
  std::uint32_t vector_arity = 1;  ///< .v2, .v4
  std::vector<std::uint64_t>
      dimensions;                ///< empty: not an array; a first dimension of 0: `name[]`, size unknown
  std::uint64_t size_bytes = 0;  ///< whole; 0 for `name[]` (dynamic shared memory when .extern .shared)
  std::uint32_t alignment_bytes = 1;
  /// Function variables in .local: in the function's frame; in .param: in its argument area. Else 0.
  std::uint64_t offset_bytes = 0;
  bool managed = false;            ///< .attribute(.managed)
  std::vector<std::byte> initial;  ///< leading bytes; the rest is zero
  std::vector<Relocation> relocations;
  SourceLocation location;
};

/// A formal or return parameter. `space` is Param or, for .func only, Reg.
struct Parameter {
  std::string name;
  StateSpace space = StateSpace::Param;
  Type type = Type::None;
  std::vector<std::uint64_t> dimensions;  ///< `.param .align 8 .b8 name[24]`
  std::uint64_t size_bytes = 0;
  std::uint32_t alignment_bytes = 1;
  std::uint64_t offset_bytes = 0;  ///< offset in the packed block of this list (C layout); 0 for Reg
  std::uint32_t register_index =
      no_index;             ///< Reg: into Function::registers (no_index where there is no body)
  bool is_pointer = false;  ///< .ptr
  SourceLocation location;
};

/// A virtual register. Only registers that are used somewhere get an index.
struct Register {
  std::string name;
  Type type = Type::None;
};

enum class OperandKind : std::uint8_t {
  None,
  Register,         ///< `register_index`; `negated`: !p
  Immediate,        ///< `bits`
  Symbol,           ///< the address of `symbol` + `offset` (mov, cvta, call arguments)
  RegisterAddress,  ///< [register_index + offset]
  SymbolAddress,    ///< [symbol + offset]
  AbsoluteAddress,  ///< [offset]
  Vector,           ///< `elements`
  Label,            ///< `target`
  BranchTable,      ///< brx.idx: `target` indexes Function::branch_tables
  SpecialRegister,  ///< `special`
  Sink,             ///< `_`
  PredicatePair,  ///< p|q: `register_index` and `second_register_index`; no_index for `_`. Also d|p of shfl,
                  ///< match, elect.
};

/// An element of {a, b, ...}: a register, an immediate (`register_index` is no_index) or a sink.
struct VectorElement {
  OperandKind kind = OperandKind::None;
  std::uint32_t register_index = no_index;
  std::uint64_t bits = 0;
  bool is_float_literal = false;
  bool is_single_literal = false;
};

struct Operand {
  OperandKind kind = OperandKind::None;
  bool negated = false;
  bool is_float_literal = false;   ///< Immediate: how it was written, 1.5, 0f3fc00000 or 0d3ff8000000000000
  bool is_single_literal = false;  ///< Immediate: 0f3fc00000
  SpecialRegister special = SpecialRegister::None;
  std::uint32_t register_index = no_index;
  std::uint32_t second_register_index = no_index;
  Symbol symbol;
  std::int64_t offset = 0;  ///< bytes
  /// Immediate: the bit pattern in the width of the type the instruction reads here, zero above it. Float
  /// literals are already converted to that type; integers are truncated to it.
  std::uint64_t bits = 0;
  /// Label: an index into Function::instructions; equal to its size: the end of the function (as `ret`).
  std::uint32_t target = no_index;
  std::vector<VectorElement> elements;
  SourceLocation location;
};

/// `@p` or `@!p`; register_index is no_index where there is none.
struct Guard {
  std::uint32_t register_index = no_index;
  bool negated = false;
};

/// One instruction. Types stand in source order: `type` first (the destination's for cvt, set, dp4a's first
/// source), then `source_type`; mma has four.
struct Instruction {
  Opcode opcode{};
  Modifiers modifiers;
  Type type = Type::None;
  Type source_type = Type::None;
  std::array<Type, 2> more_types{};  ///< mma: type=d, source_type=a, more_types={b, c}
  Guard guard;
  /// Operands in source order: the destination, if any, is first. Empty for call.
  std::vector<Operand> operands;
  std::uint32_t call_index = no_index;    ///< Opcode::Call: into Function::calls
  std::uint32_t opaque_index = no_index;  ///< Opcode::Opaque: into Function::opaque_instructions
  SourceLocation location;
};

/// call (returns), target, (arguments){, prototype}; arguments and returns are Register, Immediate, Sink, or
/// Symbol operands (FunctionVariable in .param space, or own Parameter).
struct Call {
  std::uint32_t function_index = no_index;         ///< direct: into Module::functions
  std::uint32_t target_register_index = no_index;  ///< indirect: holds the address of a function
  std::uint32_t prototype_index = no_index;        ///< indirect: into Function::prototypes
  std::uint32_t targets_index = no_index;  ///< indirect through .calltargets: into Function::call_targets
  std::vector<Operand> returns;
  std::vector<Operand> arguments;
};

/// An instruction that the parser does not know, kept for analysis: `operands` of the instruction are the
/// registers that its text names, each of which it may read or write.
struct OpaqueInstruction {
  std::string text;          ///< the opcode with its modifiers, as written
  bool has_address = false;  ///< an operand in brackets: it may touch memory
  bool only_shared = false;  ///< its modifiers say that it touches .shared alone
  bool may_jump = false;     ///< an operand is no register, symbol or number: perhaps a label
};

/// `.callprototype`: only types, sizes and offsets of the parameters matter.
struct Prototype {
  std::string name;
  std::vector<Parameter> return_parameters;
  std::vector<Parameter> parameters;
};
struct CallTargets {
  std::string name;
  std::vector<std::uint32_t> function_indices;
};
struct BranchTable {
  std::string name;
  std::vector<std::uint32_t> targets;  ///< instruction indices
};
struct Label {
  std::string name;
  std::uint32_t target = no_index;
  SourceLocation location;
};

/// Performance and shape directives; 0: not given. x, y, z are 1 where only some are given.
struct LaunchBounds {
  std::array<std::uint32_t, 3> maxntid{};
  std::array<std::uint32_t, 3> reqntid{};
  std::array<std::uint32_t, 3> reqnctapercluster{};
  std::uint32_t minnctapersm = 0;
  std::uint32_t maxnctapersm = 0;
  std::uint32_t maxnreg = 0;
  std::uint32_t maxclusterrank = 0;
  bool explicitcluster = false;
};

struct Function {
  std::string name;
  bool is_entry = false;
  bool has_body =
      false;  ///< false: only declared (vprintf, malloc, __assertfail, or defined in another module)
  bool no_return = false;
  Linkage linkage = Linkage::Internal;
  LaunchBounds bounds;
  std::vector<Parameter> parameters;
  std::vector<Parameter> return_parameters;
  std::uint64_t parameter_bytes = 0;  ///< size of the packed parameter block
  std::uint64_t return_parameter_bytes = 0;
  std::vector<Register> registers;
  std::vector<Variable> variables;
  std::uint64_t local_frame_bytes = 0;  ///< size of all .local variables
  std::uint32_t local_frame_alignment_bytes = 1;
  std::uint64_t argument_area_bytes = 0;  ///< size of all .param variables of the body: the caller's side of
                                          ///< calls
  std::vector<Instruction> instructions;
  std::vector<Call> calls;
  std::vector<OpaqueInstruction> opaque_instructions;
  std::vector<Prototype> prototypes;
  std::vector<CallTargets> call_targets;
  std::vector<BranchTable> branch_tables;
  std::vector<Label> labels;  ///< labels for listings; operands are resolved
  SourceLocation location;
};

struct Module {
  std::uint32_t version_major = 0;
  std::uint32_t version_minor = 0;
  std::string target;           ///< "sm_80", "sm_90a"
  std::uint32_t target_sm = 0;  ///< 80, 90
  std::uint32_t address_size_bits = 64;
  std::vector<Variable> variables;
  std::vector<Function> functions;
};

/// An index into Module::functions; no_index when there is none of that name.
std::uint32_t find_function(const Module& module, std::string_view name);
/// An index into Module::variables; no_index when there is none of that name.
std::uint32_t find_variable(const Module& module, std::string_view name);

}  // namespace firebreak::ptx
