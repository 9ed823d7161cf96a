// SPDX-License-Identifier: Apache-2.0
#include "kernels/access/register_flow.h"

#include <algorithm>

#include "kernels/ptx/memory_effect.h"

namespace firebreak::access {
namespace {

using ptx::EffectKind;
using ptx::Instruction;
using ptx::no_index;
using ptx::Opcode;
using ptx::Operand;
using ptx::OperandKind;
using ptx::StateSpace;

bool is_address(OperandKind kind) {
  return kind == OperandKind::RegisterAddress || kind == OperandKind::SymbolAddress ||
         kind == OperandKind::AbsoluteAddress;
}

// Visits each register that the operand names.
template <class Use>
void for_each_register(const Operand& operand, const Use& use) {
  if (operand.register_index != no_index) use(operand.register_index);
  if (operand.second_register_index != no_index) use(operand.second_register_index);
  for (const ptx::VectorElement& element : operand.elements)
    if (element.register_index != no_index) use(element.register_index);
}

class FlowFinder {
 public:
  FlowFinder(const ptx::Function& kernel, const std::vector<bool>& is_own_read, Budget& budget)
      : kernel_(kernel), is_own_read_(is_own_read), budget_(budget) {
    flow_.registers.resize(kernel.registers.size());
  }

  RegisterFlow run() {
    for (const Instruction& instruction : kernel_.instructions) {
      flow_.has_order = flow_.has_order || is_about_order(instruction);
      for (const ptx::MemoryEffect& effect : ptx::memory_effects(instruction))
        flow_.reads_shared =
            flow_.reads_shared || (effect.kind == EffectKind::Read && is_shared(effect.space));
    }
    for (bool grows = true; grows && !budget_.is_spent();) {
      grows = false;
      for (std::uint32_t i = 0; i < kernel_.instructions.size(); ++i) grows = pass(i) || grows;
    }
    return std::move(flow_);
  }

 private:
  static bool is_shared(StateSpace space) {
    return space == StateSpace::Shared || space == StateSpace::SharedCluster;
  }

  static bool is_ordered(const Instruction& instruction) {
    const ptx::MemoryOrder order = instruction.modifiers.order;
    return order != ptx::MemoryOrder::None && order != ptx::MemoryOrder::Weak;
  }

  // Its outcome depends on who has come before.
  static bool is_about_order(const Instruction& instruction) {
    switch (instruction.opcode) {
      case Opcode::Activemask:
      case Opcode::ElectSync:
      case Opcode::MbarrierTestWait:
      case Opcode::MbarrierTryWait:
      case Opcode::Opaque:
      case Opcode::Shfl:
      case Opcode::Vote:
        return true;
      default:
        break;
    }
    for (const ptx::MemoryEffect& effect : ptx::memory_effects(instruction)) {
      if (effect.kind == EffectKind::None) continue;
      const bool is_global = effect.space == StateSpace::Global || effect.space == StateSpace::None;
      if (is_ordered(instruction) || effect.space == StateSpace::SharedCluster) return true;
      if (effect.kind == EffectKind::Atomic && !is_global) return true;
    }
    return false;
  }

  bool pass(std::uint32_t index) {
    const Instruction& instruction = kernel_.instructions[index];
    budget_.take(1 + instruction.operands.size());
    ValueOrigins made = sources_of(instruction);
    const bool writes_first = ptx::writes_first_operand(instruction) && !instruction.operands.empty();
    note_guard(instruction, made);
    bool grows = note_stored(instruction, made);
    for (const ptx::MemoryEffect& effect : ptx::memory_effects(instruction))
      if (effect.kind == EffectKind::Read || effect.kind == EffectKind::Atomic)
        add_loaded(index, effect, made);
    made.by_order = made.by_order || is_about_order(instruction);
    if (instruction.opcode == Opcode::Opaque) {
      for (const Operand& each : instruction.operands) grows = give(each, made) || grows;
    } else if (instruction.opcode == Opcode::Call) {
      for (const Operand& each : kernel_.calls[instruction.call_index].returns)
        grows = give(each, anything()) || grows;
    } else if (writes_first) {
      grows = give(instruction.operands[0], made) || grows;
    }
    return grows;
  }

  static ValueOrigins anything() {
    ValueOrigins all;
    all.is_any = all.has_address = all.by_order = true;
    return all;
  }

  const ValueOrigins& of(std::uint32_t register_index) const { return flow_.registers[register_index]; }

  // Values that go in; addresses are none.
  ValueOrigins sources_of(const Instruction& instruction) const {
    ValueOrigins all;
    const bool writes_first = ptx::writes_first_operand(instruction);
    const bool is_opaque = instruction.opcode == Opcode::Opaque;
    for (std::size_t i = 0; i < instruction.operands.size(); ++i) {
      const Operand& operand = instruction.operands[i];
      if ((i == 0 && writes_first && !is_opaque) || is_address(operand.kind)) continue;
      for_each_register(operand, [&](std::uint32_t each) { all.add(of(each)); });
      if (operand.kind == OperandKind::Symbol) add_symbol(operand, all);
    }
    return all;
  }

  static void add_symbol(const Operand& operand, ValueOrigins& all) {
    all.has_address = all.has_address || operand.symbol.kind != ptx::SymbolKind::Function;
  }

  // A write under a guard depends on it, as what is done behind a branch does.
  void note_guard(const Instruction& instruction, ValueOrigins& made) {
    if (instruction.guard.register_index == no_index && instruction.opcode != Opcode::BrxIdx) return;
    ValueOrigins chosen;
    if (instruction.guard.register_index != no_index) chosen = of(instruction.guard.register_index);
    if (instruction.opcode == Opcode::BrxIdx)
      for_each_register(instruction.operands[0], [&](std::uint32_t each) { chosen.add(of(each)); });
    made.by_order = made.by_order || chosen.by_order;
    made.by_own = made.by_own || chosen.by_own;
    const Opcode opcode = instruction.opcode;
    const bool is_branch = opcode == Opcode::Bra || opcode == Opcode::BrxIdx || opcode == Opcode::Exit ||
                           opcode == Opcode::Ret || opcode == Opcode::Trap || opcode == Opcode::Call;
    flow_.branches_by_order = flow_.branches_by_order || (is_branch && chosen.by_order);
    flow_.branches_by_own = flow_.branches_by_own || (is_branch && chosen.by_own);
  }

  // Arguments of calls are not followed: a kernel with a call of a function that comes back is refused.
  bool note_stored(const Instruction& instruction, const ValueOrigins& value) {
    bool stores = false;
    for (const ptx::MemoryEffect& effect : ptx::memory_effects(instruction))
      stores = stores || ((effect.kind == EffectKind::Write || effect.kind == EffectKind::Atomic) &&
                          effect.space != StateSpace::Param);
    return (stores || instruction.opcode == Opcode::Opaque) && memory_.add(value);
  }

  void add_loaded(std::uint32_t index, const ptx::MemoryEffect& effect, ValueOrigins& made) const {
    const Instruction& instruction = kernel_.instructions[index];
    ValueOrigins place;
    if (effect.operand != no_index)
      for_each_register(instruction.operands[effect.operand],
                        [&](std::uint32_t each) { place.add(of(each)); });
    made.by_order = made.by_order || place.by_order;
    made.by_own = made.by_own || place.by_own || is_own_read_[index];
    if (effect.space == StateSpace::Param) return add_parameter(instruction, effect, made);
    ValueOrigins stored = memory_;
    // The words are other threads', or the thread's own. Nobody writes meanwhile what is read in global
    // memory.
    const bool is_generic = effect.space == StateSpace::None;
    const bool is_own = is_own_read_[index] || effect.space == StateSpace::Local ||
                        (is_generic && (place.has_address || !place.has_pointers()));
    if (!is_own) stored.by_order = stored.by_own = false;
    stored.by_order =
        stored.by_order || is_shared(effect.space) || (is_generic && is_own && !is_own_read_[index]);
    made.add(stored);
  }

  void add_parameter(const Instruction& instruction, const ptx::MemoryEffect& effect,
                     ValueOrigins& made) const {
    const Operand* const from = effect.operand == no_index ? nullptr : &instruction.operands[effect.operand];
    const bool is_known = from != nullptr && from->kind == OperandKind::SymbolAddress &&
                          from->symbol.kind == ptx::SymbolKind::Parameter;
    if (!is_known) {
      made.is_any = true;
      return;
    }
    const std::uint64_t start =
        kernel_.parameters[from->symbol.index].offset_bytes + static_cast<std::uint64_t>(from->offset);
    made.add_words(start, ptx::access_bytes(instruction));
  }

  bool give(const Operand& to, ValueOrigins made) {
    bool grows = false;
    for_each_register(to, [&](std::uint32_t each) {
      ValueOrigins own = made;
      if (kernel_.registers[each].type == ptx::Type::Pred) own.forget_pointers();
      grows = flow_.registers[each].add(own) || grows;
    });
    return grows;
  }

  const ptx::Function& kernel_;
  const std::vector<bool>& is_own_read_;
  Budget& budget_;
  ValueOrigins memory_;  ///< origins of what has been stored, wherever
  RegisterFlow flow_;
};

}  // namespace

bool ValueOrigins::add(const ValueOrigins& other) {
  const ValueOrigins before = *this;
  is_any = is_any || other.is_any;
  has_address = has_address || other.has_address;
  by_order = by_order || other.by_order;
  by_own = by_own || other.by_own;
  for (std::size_t i = 0; i < other.word_count; ++i) add_words(std::uint64_t{other.words[i]} * word_bytes, 1);
  return *this != before;
}

bool ValueOrigins::add_words(std::uint64_t offset_bytes, std::uint64_t size_bytes) {
  bool grows = false;
  for (std::uint64_t word = offset_bytes / word_bytes;
       word * word_bytes < offset_bytes + size_bytes && !is_any; ++word) {
    const auto end = words.begin() + word_count;
    if (std::find(words.begin(), end, word) != end) continue;
    grows = true;
    if (word_count == most_words || word > 0xFFFF)
      is_any = true;
    else
      words[word_count++] = static_cast<std::uint16_t>(word);
  }
  return grows;
}

void ValueOrigins::forget_pointers() {
  words = {};
  word_count = 0;
  is_any = has_address = false;
}

RegisterFlow find_register_flow(const ptx::Function& kernel, const std::vector<bool>& is_own_read,
                                Budget& budget) {
  return FlowFinder(kernel, is_own_read, budget).run();
}

}  // namespace firebreak::access
