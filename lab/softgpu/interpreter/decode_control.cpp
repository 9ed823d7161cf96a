// SPDX-License-Identifier: Apache-2.0
/// Branches, calls and ends.
#include <array>

#include "softgpu/interpreter/control_flow.h"
#include "softgpu/interpreter/decode.h"

namespace firebreak::softgpu {

namespace {

using ptx::Instruction;
using ptx::Opcode;
using ptx::Operand;
using ptx::OperandKind;
using ptx::StateSpace;
using ptx::SymbolKind;

Status decode_branch(FunctionDecoder& decoder, const Instruction& i) {
  decoder.emit(&execute_branch, i);
  decoder.jump_to(i.operands[0].target);
  return {};
}

Status decode_indexed_branch(FunctionDecoder& decoder, const Instruction& i) {
  const auto index = decoder.source(i, i.operands[0], 32);
  if (!index) return tl::unexpected(index.error());
  MicroOp& op = decoder.emit(&execute_indexed_branch, i);
  op.operands[1] = *index;
  op.jump = static_cast<std::int32_t>(i.operands[1].target);
  return {};
}

/// The formal side of a call.
struct Formal {
  const std::vector<ptx::Parameter>* parameters = nullptr;
  const std::vector<ptx::Parameter>* returns = nullptr;
  const ptx::Function* function = nullptr;  ///< of a direct call
};

Result<Formal> formal_side(const FunctionDecoder& decoder, const Instruction& i, const ptx::Call& call) {
  const ptx::Function& caller = decoder.function();
  if (call.function_index != ptx::no_index) {
    const ptx::Function& callee = decoder.module().functions[call.function_index];
    return Formal{&callee.parameters, &callee.return_parameters, &callee};
  }
  if (call.prototype_index != ptx::no_index) {
    const ptx::Prototype& prototype = caller.prototypes[call.prototype_index];
    return Formal{&prototype.parameters, &prototype.return_parameters, nullptr};
  }
  if (call.targets_index != ptx::no_index &&
      !caller.call_targets[call.targets_index].function_indices.empty()) {
    const std::uint32_t first = caller.call_targets[call.targets_index].function_indices.front();
    const ptx::Function& callee = decoder.module().functions[first];
    return Formal{&callee.parameters, &callee.return_parameters, nullptr};
  }
  return decoder.unsupported(i, "an indirect call without a prototype");
}

/// The callee finds a parameter there.
Status place_formal(const FunctionDecoder& decoder, const Instruction& i, const ptx::Parameter& formal,
                    const Formal& side, CallValue& value) {
  value.size_bytes = static_cast<std::uint32_t>(formal.size_bytes);
  if (formal.space == StateSpace::Param) {
    value.callee = CallValue::Place::Parameter;
    value.callee_offset = static_cast<std::uint32_t>(formal.offset_bytes);
    return {};
  }
  if (side.function == nullptr || formal.register_index == ptx::no_index) {
    return decoder.unsupported(i, "register parameters of an indirect call");
  }
  value.callee = CallValue::Place::Register;
  value.callee_register = FrameLayout(*side.function).registers[formal.register_index];
  value.size_bytes = ptx::size_bytes(formal.type);
  return {};
}

Result<CallValue> call_value(FunctionDecoder& decoder, const Instruction& i, const Operand& actual,
                             const ptx::Parameter& formal, const Formal& side, bool is_return) {
  CallValue value;
  if (Status status = place_formal(decoder, i, formal, side, value); !status)
    return tl::unexpected(status.error());
  const std::uint32_t width = value.size_bytes * 8;
  if (actual.kind == OperandKind::Symbol) {
    if (decoder.function().is_entry && actual.symbol.kind == SymbolKind::Parameter) {
      return decoder.unsupported(i, "a kernel parameter as an argument");
    }
    bool relative = false;
    const auto offset = decoder.address_of(i, actual.symbol, relative);
    if (!offset) return propagate(offset);
    value.caller = CallValue::Place::Parameter;
    value.caller_offset = static_cast<std::uint32_t>(*offset);
    return value;
  }
  if (width != 8 && width != 16 && width != 32 && width != 64)
    return decoder.unsupported(i, "a register argument");
  const auto place =
      is_return ? decoder.destination(i, actual, width, false) : decoder.source(i, actual, width);
  if (!place) return propagate(place);
  value.caller = CallValue::Place::Register;
  value.caller_register = *place;
  return value;
}

Status place_values(FunctionDecoder& decoder, const Instruction& i, const ptx::Call& call, const Formal& side,
                    CallSite& site) {
  if (call.arguments.size() != side.parameters->size() || call.returns.size() != side.returns->size()) {
    return decoder.unsupported(i, "the number of arguments differs from the callee's");
  }
  for (std::size_t k = 0; k < call.arguments.size(); ++k) {
    const auto value = call_value(decoder, i, call.arguments[k], (*side.parameters)[k], side, false);
    if (!value) return tl::unexpected(value.error());
    site.arguments.push_back(*value);
  }
  for (std::size_t k = 0; k < call.returns.size(); ++k) {
    const auto value = call_value(decoder, i, call.returns[k], (*side.returns)[k], side, true);
    if (!value) return tl::unexpected(value.error());
    site.returns.push_back(*value);
  }
  return {};
}

Status decode_call(FunctionDecoder& decoder, const Instruction& i) {
  const ptx::Call& call = decoder.function().calls[i.call_index];
  const auto side = formal_side(decoder, i, call);
  if (!side) return tl::unexpected(side.error());
  const bool direct = call.function_index != ptx::no_index;
  if (direct && !side->function->has_body) {
    // A failed assertion ends the kernel; anything else that is not there is an error, as it is for a linker.
    if (side->function->name != "__assertfail")
      return decoder.unsupported(i, side->function->name + " has no body");
    decoder.emit(&execute_trap, i).detail = static_cast<std::int32_t>(GpuFaultKind::Assertion);
    return {};
  }
  CallSite site;
  site.function_index = call.function_index;
  if (!direct) {
    if (decoder.register_width(call.target_register_index) != 64)
      return decoder.unsupported(i, "a 32-bit target");
    site.target = decoder.register_place(call.target_register_index);
  }
  if (Status status = place_values(decoder, i, call, *side, site); !status) return status;
  MicroOp& op = decoder.emit(direct ? &execute_call : &execute_indirect_call, i);
  op.jump = static_cast<std::int32_t>(decoder.code().call_sites.size());
  decoder.code().call_sites.push_back(std::move(site));
  return {};
}

template <Execute execute>
Status decode_plain(FunctionDecoder& decoder, const Instruction& i) {
  decoder.emit(execute, i);
  return {};
}

template <GpuFaultKind kind>
Status decode_trap(FunctionDecoder& decoder, const Instruction& i) {
  decoder.emit(&execute_trap, i).detail = static_cast<std::int32_t>(kind);
  return {};
}

struct Entry {
  Opcode opcode;
  DecodeFunction decode;
};
constexpr std::array entries = {
    Entry{Opcode::Bra, &decode_branch},
    Entry{Opcode::BrxIdx, &decode_indexed_branch},
    Entry{Opcode::Call, &decode_call},
    Entry{Opcode::Ret, &decode_plain<&execute_return>},
    Entry{Opcode::Exit, &decode_plain<&execute_exit>},
    Entry{Opcode::Trap, &decode_trap<GpuFaultKind::Trap>},
    Entry{Opcode::Brkpt, &decode_trap<GpuFaultKind::Breakpoint>},
    Entry{Opcode::Nanosleep, &decode_plain<&execute_yield>},
    Entry{Opcode::Pmevent, &decode_plain<&execute_nothing>},
    Entry{Opcode::Griddepcontrol, &decode_plain<&execute_nothing>},
};

}  // namespace

DecodeFunction find_control_decoder(Opcode opcode) {
  for (const Entry& entry : entries) {
    if (entry.opcode == opcode) return entry.decode;
  }
  return nullptr;
}

}  // namespace firebreak::softgpu
