// SPDX-License-Identifier: Apache-2.0
#include "kernels/access/program.h"

#include <algorithm>
#include <array>
#include <optional>
#include <unordered_map>
#include <unordered_set>
#include <utility>

namespace firebreak::access {
namespace {

constexpr std::size_t most_values = 4'096;  // limit for one place
constexpr std::size_t most_open_loops = 16;

// The slot of an expression's value: an index into PlaceCompiler::values_of_slots_. A value that is narrowed
// stays in its slot.
using Slot = std::uint16_t;
using SlotMap = std::unordered_map<ExpressionIndex, Slot>;

// The change of a value from one iteration of a loop to the next.
class ShapeFinder {
 public:
  enum class Shape : std::uint8_t {
    Same,    ///< it is what it was before
    Linear,  ///< it grows by the same amount each time
    Other,   ///< or nobody knows
  };

  ShapeFinder(const ThreadValues& values, std::uint32_t loop, Budget& budget)
      : values_(values), pool_(values.pool), loop_(loop), budget_(budget) {}

  Shape find(ExpressionIndex index) {
    index = pool_.resolve(index);
    std::vector<ExpressionIndex> waiting{index};
    while (!waiting.empty()) {
      if (!budget_.take()) return Shape::Other;
      const ExpressionIndex next = waiting.back();
      const Expression& node = pool_[next];
      const bool is_leaf = is_made_at_once(node.operation);
      const std::size_t before = waiting.size();
      for (const ExpressionIndex operand : node.operands) {
        if (is_leaf || operand == no_expression) continue;
        const ExpressionIndex made = pool_.resolve(operand);
        if (!known_.contains(made)) waiting.push_back(made);
      }
      if (waiting.size() != before) continue;
      waiting.pop_back();
      known_.emplace(next, is_leaf ? shape_of_leaf(node) : shape_of(node));
    }
    return known_.at(index);
  }

 private:
  static bool is_made_at_once(Operation operation) {
    switch (operation) {
      case Operation::Constant:
      case Operation::Parameter:
      case Operation::Special:
      case Operation::Variable:
      case Operation::SharedAddress:
      case Operation::LocalAddress:
      case Operation::Window:
      case Operation::Unknown:
      case Operation::Phi:
      case Operation::LoopCounter:
        return true;
      default:
        return false;
    }
  }

  bool is_inside(std::uint32_t block) const {
    return block == ptx::no_index || values_.graph.loops[loop_].body[block];
  }

  // Values that are made in the loop are made anew each time: data, where paths meet, how far another loop
  // inside of it has come.
  Shape shape_of_leaf(const Expression& node) const {
    switch (node.operation) {
      case Operation::LoopCounter:
        if (node.value == loop_) return Shape::Linear;
        return is_inside(values_.graph.loops[node.value].header) ? Shape::Other : Shape::Same;
      case Operation::Unknown:
        return is_inside(pool_.source_of(node).block) ? Shape::Other : Shape::Same;
      case Operation::Phi: {
        const PhiNode& phi = pool_.phis[node.value];
        const bool enters = phi.joins_entries && phi.block == values_.graph.loops[loop_].header;
        return is_inside(phi.block) && !enters ? Shape::Other : Shape::Same;
      }
      default:
        return Shape::Same;
    }
  }

  Shape shape_of(const Expression& node) const {
    int linear = 0;
    for (const ExpressionIndex operand : node.operands) {
      if (operand == no_expression) continue;
      const Shape shape = known_.at(pool_.resolve(operand));
      if (shape == Shape::Other) return Shape::Other;
      linear += shape == Shape::Linear ? 1 : 0;
    }
    if (linear == 0) return Shape::Same;
    switch (node.operation) {
      case Operation::Add:
      case Operation::Subtract:
      case Operation::Truncate:
        return Shape::Linear;
      case Operation::Multiply:
        return linear == 1 ? Shape::Linear : Shape::Other;
      default:
        return Shape::Other;
    }
  }

  const ThreadValues& values_;
  const ExpressionPool& pool_;
  const std::uint32_t loop_;
  Budget& budget_;
  std::unordered_map<ExpressionIndex, Shape> known_;
};

class PlaceCompiler {
 public:
  PlaceCompiler(const ThreadValues& values, std::uint32_t block,
                const std::vector<AccessCondition>& conditions, StepPool& steps, Budget& budget)
      : values_(values),
        pool_(values.pool),
        block_(block),
        conditions_(conditions),
        steps_(steps),
        budget_(budget) {}

  CompiledPlace compile(const std::vector<ExpressionIndex>& addresses) {
    SlotMap slots;
    current_ = &slots;
    for (const AccessCondition& condition : conditions_) {
      is_needed_ = condition.is_needed;
      impose(condition.predicate);
    }
    CompiledPlace compiled;
    for (const ExpressionIndex address : addresses) {
      AddressProgram& program = compiled.programs.emplace_back();
      program.result = value_of(slot_of(address));
      program.is_complete = !overflows_;
    }
    for (std::uint32_t loop = 0; loop < values_.graph.loops.size(); ++loop)
      if (values_.graph.loops[loop].body[block_]) place_.loops.push_back(loop);
    compiled.place = std::move(place_);
    return compiled;
  }

 private:
  StepIndex value_of(Slot slot) const { return values_of_slots_[slot]; }

  StepIndex add(const ProgramStep& step) {
    const std::size_t index = overflows_ ? most_steps : steps_.add(step);
    overflows_ = index == most_steps || place_.steps.size() > 4 * most_values || !budget_.take();
    if (overflows_) return 0;
    const auto made = static_cast<StepIndex>(index);
    // The requirement stands before each restriction that follows from it.
    const bool is_new = is_in_place_.emplace(made).second;
    if (is_new || step.kind == StepKind::Require) place_.steps.push_back(made);
    return made;
  }

  Slot add_value(const ProgramStep& step) {
    if (values_of_slots_.size() + 1 >= most_values) overflows_ = true;
    const StepIndex value = add(step);
    if (overflows_) return 0;
    values_of_slots_.push_back(value);
    return static_cast<Slot>(values_of_slots_.size() - 1);
  }

  // Visits each of the predicates that have to hold for this one, from left to right.
  template <class Use>
  void for_each_part(ExpressionIndex predicate, const Use& use) {
    std::vector<ExpressionIndex> waiting{predicate};
    while (!waiting.empty() && !overflows_) {
      const ExpressionIndex part = pool_.resolve(waiting.back());
      waiting.pop_back();
      overflows_ = !budget_.take();
      const Expression& node = pool_[part];
      if (node.operation != Operation::And || node.width_bits != 1) {
        use(part, node);
        continue;
      }
      waiting.push_back(node.operands[1]);
      waiting.push_back(node.operands[0]);
    }
  }

  void impose(ExpressionIndex predicate) {
    for_each_part(predicate, [&](ExpressionIndex part, const Expression& node) { impose_part(part, node); });
  }

  void impose_part(ExpressionIndex predicate, const Expression& node) {
    if (node.operation == Operation::Unknown) return;
    ProgramStep require;
    require.kind = StepKind::Require;
    require.is_needed = is_needed_;
    require.a = value_of(slot_of(predicate));
    add(require);
    if (node.operation != Operation::Compare) return;
    const Slot a = slot_of(node.operands[0]);
    const Slot b = slot_of(node.operands[1]);
    narrow(node, node.compare, node.operands[0], a, b);
    narrow(node, mirrored(node.compare), node.operands[1], b, a);
  }

  static ptx::Compare mirrored(ptx::Compare how) {
    switch (how) {
      case ptx::Compare::Lt:
        return ptx::Compare::Gt;
      case ptx::Compare::Gt:
        return ptx::Compare::Lt;
      case ptx::Compare::Le:
        return ptx::Compare::Ge;
      case ptx::Compare::Ge:
        return ptx::Compare::Le;
      default:
        return how;
    }
  }

  void narrow(const Expression& node, ptx::Compare how, ExpressionIndex which, Slot narrowed, Slot other) {
    if (pool_[pool_.resolve(which)].operation == Operation::Constant) return;
    ProgramStep step;
    step.kind = StepKind::Restrict;
    step.is_needed = is_needed_;
    step.b = value_of(other);
    step.c = value_of(narrowed);
    step.compare = how;
    step.is_signed = node.is_signed;
    step.operand_width_bits = node.operand_width_bits;
    values_of_slots_[narrowed] = add(step);
  }

  // Makes a slot with a stack of its own: what it is made of may go as deep as a kernel has instructions.
  Slot slot_of(ExpressionIndex index) {
    index = pool_.resolve(index);
    std::vector<ExpressionIndex> waiting{index};
    while (!waiting.empty() && !overflows_) {
      const ExpressionIndex next = waiting.back();
      overflows_ = !budget_.take();
      const std::size_t before = waiting.size();
      if (!current_->contains(next)) push_missing(next, waiting);
      if (waiting.size() != before) continue;
      waiting.pop_back();
      if (!current_->contains(next)) current_->emplace(next, made_slot(next));
    }
    const auto found = current_->find(index);
    return overflows_ || found == current_->end() ? Slot{0} : found->second;
  }

  // Pushes what has to be made before.
  void push_missing(ExpressionIndex index, std::vector<ExpressionIndex>& waiting) {
    const Expression& node = pool_[index];
    const auto push = [&](ExpressionIndex operand) {
      operand = pool_.resolve(operand);
      if (!current_->contains(operand)) waiting.push_back(operand);
    };
    if (node.operation == Operation::LoopCounter) return;
    if (node.operation != Operation::Phi) {
      for (std::size_t i = node.operands.size(); i-- > 0;)
        if (node.operands[i] != no_expression) push(node.operands[i]);
      return;
    }
    const PhiNode& phi = pool_.phis[node.value];
    if (!joins_paths(phi)) return;
    overflows_ = overflows_ || !budget_.take(phi.operands.size());
    for (std::size_t i = phi.operands.size(); i-- > 0;) push(phi.operands[i]);
  }

  Slot made_slot(ExpressionIndex index) {
    const Expression& node = pool_[index];
    if (node.operation == Operation::Phi) return joined_slot(index);
    return node.operation == Operation::LoopCounter ? counter_slot(index) : evaluated_slot(node);
  }

  Slot known_slot(ExpressionIndex index) const {
    const auto found = current_->find(pool_.resolve(index));
    return found == current_->end() ? Slot{0} : found->second;
  }

  // Makes a value other than that of any other expression.
  Slot unknown_slot(ExpressionIndex index, UnknownReason reason) {
    ProgramStep step;
    step.operation = Operation::Unknown;
    step.width_bits = pool_[index].width_bits;
    step.reason = reason;
    step.value = std::uint64_t{1} << 32 | index;
    return add_value(step);
  }

  Slot evaluated_slot(const Expression& node) {
    std::array<StepIndex, 3> operands{};
    for (std::size_t i = 0; i < operands.size(); ++i)
      if (node.operands[i] != no_expression) operands[i] = value_of(known_slot(node.operands[i]));
    ProgramStep step;
    step.operation = node.operation;
    step.width_bits = node.width_bits;
    step.operand_width_bits = node.operand_width_bits;
    step.is_signed = node.is_signed;
    step.compare = node.compare;
    step.reason = node.reason;
    step.a = operands[0];
    step.b = operands[1];
    step.c = operands[2];
    step.value = node.value;
    return add_value(step);
  }

  // True without the operands that come round a loop: what they are is not known here.
  bool joins_paths(const PhiNode& phi) const {
    const bool comes_round = values_.graph.is_header(phi.block) && !phi.joins_entries;
    return !phi.operands.empty() && !comes_round && phi.block != 0;
  }

  Slot joined_slot(ExpressionIndex index) {
    const Expression& node = pool_[index];
    const PhiNode& phi = values_.pool.phis[node.value];
    if (!joins_paths(phi)) return unknown_slot(index, UnknownReason::Loop);
    Slot all = known_slot(phi.operands.front());
    for (std::size_t i = 1; i < phi.operands.size(); ++i) {
      const Slot one = known_slot(phi.operands[i]);
      if (one == all) continue;
      ProgramStep step;
      step.kind = StepKind::Hull;
      step.a = value_of(all);
      step.b = value_of(one);
      step.width_bits = node.width_bits;
      step.value = index;  // two joins of the same values need not choose the same one
      all = add_value(step);
    }
    return all;
  }

  // How often a loop goes round: each test that all iterations pass bounds it.
  Slot counter_slot(ExpressionIndex index) {
    const Expression node = pool_[index];
    const auto loop = static_cast<std::uint32_t>(node.value);
    const bool is_open = std::find(open_loops_.begin(), open_loops_.end(), loop) != open_loops_.end();
    if (is_open || open_loops_.size() == most_open_loops) return unknown_slot(index, UnknownReason::Loop);
    open_loops_.push_back(loop);
    const Slot slot = add_counter(loop, node.width_bits, false);
    for (const LoopTest& test : values_.loop_tests[loop])
      if (!overflows_) add_bound(test.goes_on, test.block, loop, slot);
    open_loops_.pop_back();
    return slot;
  }

  Slot add_counter(std::uint32_t loop, std::uint8_t width_bits, bool stands_still) {
    ProgramStep step;
    step.operation = Operation::LoopCounter;
    step.value = loop;
    step.width_bits = width_bits;
    step.is_signed = stands_still;
    return add_value(step);
  }

  // The access happens only in iterations that have passed the test at the end of this block.
  bool passes(std::uint32_t loop, std::uint32_t block) const {
    if (!values_.graph.loops[loop].body[block_]) return false;
    return std::any_of(conditions_.begin(), conditions_.end(),
                       [block](const AccessCondition& condition) { return condition.block == block; });
  }

  void add_bound(ExpressionIndex goes_on, std::uint32_t block, std::uint32_t loop, Slot slot) {
    for_each_part(goes_on, [&](ExpressionIndex, const Expression& node) {
      if (node.operation == Operation::Compare) add_bound(node, block, loop, slot);
    });
  }

  void add_bound(const Expression& node, std::uint32_t block, std::uint32_t loop, Slot slot) {
    const auto first = moving_of(node.operands[0], loop);
    const auto second = moving_of(node.operands[1], loop);
    // Of two sides that may move only one may wrap where it was widened: nobody knows here which one will
    // stand still.
    if (!first || !second || (first->moves && second->moves)) return;
    const Moving& moving = first->moves ? *first : *second;
    // The inside has slots of its own, where the counter is 0 and keeps its stride.
    SlotMap inside;
    SlotMap* const outside = std::exchange(current_, &inside);
    const Slot still = add_counter(loop, 64, true);
    for (const ExpressionIndex counter : values_.loop_counters[loop]) inside.emplace(counter, still);
    ProgramStep step;
    step.kind = StepKind::Count;
    step.a = value_of(slot_of(node.operands[0]));
    step.b = value_of(slot_of(node.operands[1]));
    current_ = outside;
    step.c = value_of(slot);
    step.compare = node.compare;
    step.is_signed = node.is_signed;
    step.operand_width_bits = node.operand_width_bits;
    step.value = loop;
    step.operation = passes(loop, block) ? Operation::Select : Operation::Constant;
    step.width_bits = moving.width_bits;
    step.extends_sign = moving.extends_sign;
    values_of_slots_[slot] = add(step);
  }

  struct Moving {
    bool moves = false;
    std::uint8_t width_bits = 0;  ///< width that it was widened from at last; 0: it was not
    bool extends_sign = false;
  };

  // A value that stays or grows by the same amount in each iteration, and starts anew where the width ends in
  // which it does. Nothing: it is another one.
  std::optional<Moving> moving_of(ExpressionIndex index, std::uint32_t loop) {
    Moving moving;
    index = pool_.resolve(index);
    const Expression& node = pool_[index];
    const bool is_widened =
        node.operation == Operation::SignExtend || node.operation == Operation::ZeroExtend;
    ShapeFinder shapes(values_, loop, budget_);
    const ShapeFinder::Shape shape = shapes.find(is_widened ? node.operands[0] : index);
    if (shape == ShapeFinder::Shape::Other) return std::nullopt;
    moving.moves = shape == ShapeFinder::Shape::Linear;
    if (is_widened) moving.width_bits = node.operand_width_bits;
    moving.extends_sign = node.operation == Operation::SignExtend;
    return moving;
  }

  const ThreadValues& values_;
  const ExpressionPool& pool_;
  const std::uint32_t block_;
  const std::vector<AccessCondition>& conditions_;
  StepPool& steps_;
  Budget& budget_;
  AccessPlace place_;
  std::unordered_set<StepIndex> is_in_place_;
  SlotMap* current_ = nullptr;
  std::vector<StepIndex> values_of_slots_{0};  ///< the first is for what has no room
  std::vector<std::uint32_t> open_loops_;
  bool is_needed_ = true;
  bool overflows_ = false;
};

}  // namespace

std::size_t StepPool::Hash::operator()(const ProgramStep& step) const {
  std::uint64_t hash = 0;
  const auto mix = [&hash](std::uint64_t word) {
    hash = (hash ^ word) * 0x9E37'79B9'7F4A'7C15U;
    hash ^= hash >> 32;
  };
  mix(static_cast<std::uint64_t>(step.kind) | static_cast<std::uint64_t>(step.operation) << 8 |
      std::uint64_t{step.width_bits} << 16 | std::uint64_t{step.operand_width_bits} << 24 |
      static_cast<std::uint64_t>(step.compare) << 32 | std::uint64_t{step.is_signed} << 40 |
      std::uint64_t{step.is_needed} << 41 | std::uint64_t{step.extends_sign} << 42);
  mix(step.a | std::uint64_t{step.b} << 16 | std::uint64_t{step.c} << 32);
  mix(step.value);
  return hash;
}

std::size_t StepPool::add(ProgramStep step) {
  step.variable = 0;
  if (const auto found = index_.find(step); found != index_.end()) return found->second;
  if (steps_.size() == most_steps) return most_steps;
  index_.emplace(step, static_cast<StepIndex>(steps_.size()));
  step.variable = first_step_variable + 4 * static_cast<std::uint32_t>(steps_.size());
  steps_.push_back(step);
  return steps_.size() - 1;
}

CompiledPlace compile_place(const ThreadValues& values, std::uint32_t block,
                            const std::vector<AccessCondition>& conditions,
                            const std::vector<ExpressionIndex>& addresses, StepPool& pool, Budget& budget) {
  return PlaceCompiler(values, block, conditions, pool, budget).compile(addresses);
}

}  // namespace firebreak::access
