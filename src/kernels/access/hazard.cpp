// SPDX-License-Identifier: Apache-2.0
#include "kernels/access/hazard.h"

#include <algorithm>
#include <array>

#include "kernels/ptx/memory_effect.h"
#include "kernels/ptx/opcode.h"

namespace firebreak::access {
namespace {

using ptx::MemoryOrder;
using ptx::Opcode;
using ptx::StateSpace;

bool is_global(StateSpace space) { return space == StateSpace::None || space == StateSpace::Global; }

// Memory that no other thread block sees.
bool is_own(StateSpace space) { return space == StateSpace::Shared || space == StateSpace::Local; }

std::string at(const ptx::Instruction& instruction, const std::string& what) {
  return "line " + std::to_string(instruction.location.line) + ": " + what;
}

// The variable that the operand names; null: it names none.
const ptx::Variable* variable_of(const ptx::Module& module, const ptx::Function& kernel,
                                 const ptx::Operand& operand) {
  if (operand.kind != ptx::OperandKind::SymbolAddress) return nullptr;
  if (operand.symbol.kind == ptx::SymbolKind::ModuleVariable) return &module.variables[operand.symbol.index];
  if (operand.symbol.kind == ptx::SymbolKind::FunctionVariable)
    return &kernel.variables[operand.symbol.index];
  return nullptr;
}

bool stays_in(const ptx::Variable& variable, std::int64_t offset, std::uint64_t width_bytes) {
  if (offset < 0 || width_bytes == 0) return false;
  const auto begin = static_cast<std::uint64_t>(offset);
  return begin <= variable.size_bytes && variable.size_bytes - begin >= width_bytes &&
         variable.alignment_bytes % width_bytes == 0 && begin % width_bytes == 0;
}

std::uint64_t width_of(const ptx::Instruction& instruction) {
  return std::uint64_t{std::max(ptx::size_bytes(instruction.type), 1U)} * instruction.modifiers.vector_arity;
}

std::string memory_hazard(const ptx::Module& module, const ptx::Function& kernel,
                          const ptx::Instruction& instruction) {
  for (const ptx::MemoryEffect& effect : ptx::memory_effects(instruction)) {
    if (effect.kind == ptx::EffectKind::None || is_global(effect.space)) continue;
    // Parameters and constants at places that the compiler knows are in their bank.
    if (!is_own(effect.space)) {
      if (effect.operand != ptx::no_index &&
          instruction.operands[effect.operand].kind != ptx::OperandKind::SymbolAddress)
        return at(instruction, "it goes to a computed place in constant memory");
      continue;
    }
    const ptx::Variable* const variable =
        effect.operand == ptx::no_index ? nullptr
                                        : variable_of(module, kernel, instruction.operands[effect.operand]);
    const bool stays =
        variable != nullptr && (instruction.opcode == Opcode::Ld || instruction.opcode == Opcode::St) &&
        stays_in(*variable, instruction.operands[effect.operand].offset, width_of(instruction));
    if (!stays) return at(instruction, "it goes to a computed place in shared or local memory");
  }
  return {};
}

// PTX ISA, "bar": barriers 0 to 15, of whole warps.
bool is_plain_barrier(const ptx::Instruction& instruction) {
  constexpr std::uint64_t barriers = 16;
  constexpr std::uint64_t warp_threads = 32;
  const auto& operands = instruction.operands;
  const bool is_known = std::all_of(operands.begin(), operands.end(), [](const ptx::Operand& operand) {
    return operand.kind == ptx::OperandKind::Immediate;
  });
  return is_known && !operands.empty() && operands[0].bits < barriers &&
         (operands.size() == 1 || (operands[1].bits != 0 && operands[1].bits % warp_threads == 0));
}

std::string hazard_of(const ptx::Module& module, const ptx::Function& kernel,
                      const ptx::Instruction& instruction) {
  switch (instruction.opcode) {
    case Opcode::Trap:
    case Opcode::Brkpt:
      return at(instruction, "it may stop with an exception");
    case Opcode::Call:
      return at(instruction, "it calls a function");
    case Opcode::Alloca:
    case Opcode::Stackrestore:
      return at(instruction, "it may use up the stack");
    case Opcode::BrxIdx:
      return at(instruction, "it jumps by a table, whose size its index may exceed");
    case Opcode::Opaque:
      return at(instruction, "the instruction is not known");
    case Opcode::BarArrive:
    case Opcode::BarRed:
    case Opcode::BarSync:
      if (instruction.opcode != Opcode::BarSync || !is_plain_barrier(instruction))
        return at(instruction, "it is at a barrier that may not be all threads'");
      break;
    default:
      break;
  }
  const MemoryOrder order = instruction.modifiers.order;
  if (order != MemoryOrder::None && order != MemoryOrder::Weak)
    return at(instruction, "it is ordered with what others do");
  return memory_hazard(module, kernel, instruction);
}

// True when every address of it is aligned.
bool is_aligned(const StridedBox& box) {
  const auto fits = [&](Wide value) { return value % box.width_bytes == 0; };
  return fits(box.starts.base) &&
         std::all_of(box.starts.axes.begin(), box.starts.axes.begin() + box.starts.axis_count,
                     [&](const AffineAxis& axis) { return fits(axis.stride); });
}

bool is_in(std::span<const MemoryRange> memory, const StridedBox& box) {
  return std::any_of(memory.begin(), memory.end(), [&](const MemoryRange& range) {
    const auto begin = static_cast<Wide>(range.address);
    return begin <= box.begin() && box.end() <= begin + static_cast<Wide>(range.size_bytes);
  });
}

}  // namespace

std::string find_kernel_hazard(const ptx::Module& module, const ptx::Function& kernel) {
  for (const ptx::Instruction& instruction : kernel.instructions)
    if (std::string found = hazard_of(module, kernel, instruction); !found.empty()) return found;
  return {};
}

std::string find_hazard(const KernelSummary& summary, const LaunchArguments& launch,
                        DecisionWorkspace& workspace) {
  if (!summary.refusal.empty()) return summary.refusal;
  if (!summary.hazard.empty()) return summary.hazard;
  if (launch.parameters.size() < summary.parameter_bytes) return "it is given fewer parameters than it has";
  for (std::size_t i = 0; i < summary.groups.size(); ++i) {
    const PredictedAccess access = predict(summary, i, launch, workspace);
    if (!access.happens) continue;
    const std::string where = "line " + std::to_string(summary.groups[i].line) + ": ";
    if (!access.is_known || access.is_wide || !is_in(launch.memory, access.box))
      return where + "it is not shown to stay in the process's memory";
    if (!is_aligned(access.box)) return where + "it may be misaligned";
  }
  return {};
}

}  // namespace firebreak::access
