// SPDX-License-Identifier: Apache-2.0
#include "access/program.h"

#include <algorithm>
#include <array>
#include <unordered_map>
#include <utility>

namespace firebreak::access {
namespace {

constexpr int most_depth = 1'000;

using SlotMap = std::unordered_map<ExpressionIndex, std::uint16_t>;

class ProgramCompiler {
 public:
  ProgramCompiler(const ThreadValues& values, const MemoryAccess& access,
                  const std::vector<AccessCondition>& conditions)
      : values_(values), pool_(values.pool), access_(access), conditions_(conditions) {}

  AddressProgram compile() {
    SlotMap slots;
    current_ = &slots;
    for (const AccessCondition& condition : conditions_) {
      is_needed_ = condition.is_needed;
      impose(condition.predicate);
    }
    program_.result = slot_of(access_.address, 0);
    program_.is_complete = !overflows_;
    program_.slot_count = next_;
    return std::move(program_);
  }

 private:
  std::uint16_t new_slot() {
    if (next_ + 1 >= most_slots) overflows_ = true;
    return overflows_ ? std::uint16_t{0} : next_++;
  }

  ProgramStep& emit(StepKind kind) {
    if (program_.steps.size() > std::size_t{4} * most_slots) overflows_ = true;
    program_.steps.emplace_back();
    ProgramStep& step = program_.steps.back();
    step.kind = kind;
    step.is_needed = is_needed_;
    step.variable = first_step_variable + 4 * static_cast<std::uint32_t>(program_.steps.size());
    return step;
  }

  void impose(ExpressionIndex predicate) {
    predicate = pool_.resolve(predicate);
    const Expression& node = pool_[predicate];
    if (node.operation == Operation::And && node.width_bits == 1) {
      impose(node.operands[0]);
      impose(node.operands[1]);
      return;
    }
    if (node.operation == Operation::Unknown) return;
    const std::uint16_t slot = slot_of(predicate, 0);
    emit(StepKind::Require).a = slot;
    if (node.operation != Operation::Compare) return;
    const std::uint16_t a = slot_of(node.operands[0], 0);
    const std::uint16_t b = slot_of(node.operands[1], 0);
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

  void narrow(const Expression& node, ptx::Compare how, ExpressionIndex which, std::uint16_t to,
              std::uint16_t other) {
    if (pool_[pool_.resolve(which)].operation == Operation::Constant) return;
    ProgramStep& step = emit(StepKind::Restrict);
    step.to = to;
    step.b = other;
    step.compare = how;
    step.is_signed = node.is_signed;
    step.operand_width_bits = node.operand_width_bits;
  }

  std::uint16_t slot_of(ExpressionIndex index, int depth) {
    index = pool_.resolve(index);
    if (const auto found = current_->find(index); found != current_->end()) return found->second;
    const Expression node = pool_[index];
    std::uint16_t slot = 0;
    if (depth > most_depth) {
      slot = unknown_slot(node.width_bits, UnknownReason::Computed);
    } else if (node.operation == Operation::Phi) {
      slot = joined_slot(node, depth);
    } else if (node.operation == Operation::LoopCounter) {
      slot = counter_slot(node);
    } else {
      slot = evaluated_slot(node, depth);
    }
    current_->emplace(index, slot);
    return slot;
  }

  std::uint16_t unknown_slot(std::uint8_t width_bits, UnknownReason reason) {
    const std::uint16_t slot = new_slot();
    ProgramStep& step = emit(StepKind::Evaluate);
    step.operation = Operation::Unknown;
    step.width_bits = width_bits;
    step.reason = reason;
    step.to = slot;
    return slot;
  }

  std::uint16_t evaluated_slot(const Expression& node, int depth) {
    std::array<std::uint16_t, 3> operands{};
    for (std::size_t i = 0; i < operands.size(); ++i)
      if (node.operands[i] != no_expression) operands[i] = slot_of(node.operands[i], depth + 1);
    const std::uint16_t slot = new_slot();
    ProgramStep& step = emit(StepKind::Evaluate);
    step.operation = node.operation;
    step.width_bits = node.width_bits;
    step.operand_width_bits = node.operand_width_bits;
    step.is_signed = node.is_signed;
    step.compare = node.compare;
    step.reason = node.reason;
    step.to = slot;
    step.a = operands[0];
    step.b = operands[1];
    step.c = operands[2];
    step.value = node.value;
    return slot;
  }

  // Not the operands that come round a loop: what they are is not known here.
  std::uint16_t joined_slot(const Expression& node, int depth) {
    const PhiNode& phi = values_.pool.phis[node.value];
    const bool comes_round = values_.graph.is_header(phi.block) && !phi.joins_entries;
    if (phi.operands.empty() || comes_round || phi.block == 0)
      return unknown_slot(node.width_bits, UnknownReason::Loop);
    std::uint16_t all = slot_of(phi.operands.front(), depth + 1);
    for (std::size_t i = 1; i < phi.operands.size(); ++i) {
      const std::uint16_t one = slot_of(phi.operands[i], depth + 1);
      if (one == all) continue;
      const std::uint16_t slot = new_slot();
      ProgramStep& step = emit(StepKind::Hull);
      step.to = slot;
      step.a = all;
      step.b = one;
      step.width_bits = node.width_bits;
      all = slot;
    }
    return all;
  }

  // How often a loop goes round: each test that all iterations pass bounds it.
  std::uint16_t counter_slot(const Expression& node) {
    const auto loop = static_cast<std::uint32_t>(node.value);
    if (std::find(open_loops_.begin(), open_loops_.end(), loop) != open_loops_.end())
      return unknown_slot(node.width_bits, UnknownReason::Loop);
    open_loops_.push_back(loop);
    const std::uint16_t slot = emit_counter(loop, node.width_bits, false);
    for (const LoopTest& test : values_.loop_tests[loop]) add_bound(test.goes_on, test.block, loop, slot);
    open_loops_.pop_back();
    return slot;
  }

  std::uint16_t emit_counter(std::uint32_t loop, std::uint8_t width_bits, bool stands_still) {
    const std::uint16_t slot = new_slot();
    ProgramStep& step = emit(StepKind::Evaluate);
    step.operation = Operation::LoopCounter;
    step.value = loop;
    step.to = slot;
    step.width_bits = width_bits;
    step.is_signed = stands_still;
    return slot;
  }

  // The access happens only in iterations that have passed the test at the end of this block.
  bool passes(std::uint32_t loop, std::uint32_t block) const {
    if (!values_.graph.loops[loop].body[access_.block]) return false;
    return std::any_of(conditions_.begin(), conditions_.end(),
                       [block](const AccessCondition& condition) { return condition.block == block; });
  }

  void add_bound(ExpressionIndex goes_on, std::uint32_t block, std::uint32_t loop, std::uint16_t slot) {
    goes_on = pool_.resolve(goes_on);
    const Expression node = pool_[goes_on];
    if (node.operation == Operation::And && node.width_bits == 1) {
      add_bound(node.operands[0], block, loop, slot);
      add_bound(node.operands[1], block, loop, slot);
      return;
    }
    if (node.operation != Operation::Compare) return;
    if (!is_linear(node.operands[0], loop) || !is_linear(node.operands[1], loop)) return;
    // In slots of their own, where the counter is 0 and keeps its stride.
    SlotMap inside;
    SlotMap* const outside = std::exchange(current_, &inside);
    const std::uint16_t still = emit_counter(loop, 64, true);
    for (const ExpressionIndex counter : values_.loop_counters[loop]) inside.emplace(counter, still);
    const std::uint16_t a = slot_of(node.operands[0], 0);
    const std::uint16_t b = slot_of(node.operands[1], 0);
    current_ = outside;
    ProgramStep& step = emit(StepKind::Count);
    step.to = slot;
    step.a = a;
    step.b = b;
    step.compare = node.compare;
    step.is_signed = node.is_signed;
    step.operand_width_bits = node.operand_width_bits;
    step.value = loop;
    step.operation = passes(loop, block) ? Operation::Select : Operation::Constant;
  }

  enum class Shape : std::uint8_t { Free, Linear, Other };

  // Whether a value grows by the same amount in each iteration.
  bool is_linear(ExpressionIndex index, std::uint32_t loop) const {
    std::unordered_map<ExpressionIndex, Shape> known;
    return shape_of(index, loop, known, 0) != Shape::Other;
  }

  Shape shape_of(ExpressionIndex index, std::uint32_t loop, std::unordered_map<ExpressionIndex, Shape>& known,
                 int depth) const {
    index = pool_.resolve(index);
    if (const auto found = known.find(index); found != known.end()) return found->second;
    const Expression& node = pool_[index];
    Shape shape = Shape::Free;
    if (depth > most_depth) {
      shape = Shape::Other;
    } else if (node.operation == Operation::LoopCounter) {
      shape = node.value == loop ? Shape::Linear : Shape::Free;
    } else if (node.operation == Operation::Phi) {
      known.emplace(index, Shape::Other);  // what comes round to itself
      for (const ExpressionIndex operand : pool_.phis[node.value].operands)
        if (shape_of(operand, loop, known, depth + 1) != Shape::Free) shape = Shape::Other;
    } else {
      shape = shape_of_operands(node, loop, known, depth);
    }
    known[index] = shape;
    return shape;
  }

  Shape shape_of_operands(const Expression& node, std::uint32_t loop,
                          std::unordered_map<ExpressionIndex, Shape>& known, int depth) const {
    int linear = 0;
    for (const ExpressionIndex operand : node.operands) {
      if (operand == no_expression) continue;
      const Shape shape = shape_of(operand, loop, known, depth + 1);
      if (shape == Shape::Other) return Shape::Other;
      linear += shape == Shape::Linear ? 1 : 0;
    }
    if (linear == 0) return Shape::Free;
    switch (node.operation) {
      case Operation::Add:
      case Operation::Subtract:
      case Operation::SignExtend:
      case Operation::ZeroExtend:
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
  const MemoryAccess& access_;
  const std::vector<AccessCondition>& conditions_;
  AddressProgram program_;
  SlotMap* current_ = nullptr;
  std::vector<std::uint32_t> open_loops_;
  std::uint16_t next_ = 1;
  bool is_needed_ = true;
  bool overflows_ = false;
};

}  // namespace

AddressProgram compile_address(const ThreadValues& values, const MemoryAccess& access,
                               const std::vector<AccessCondition>& conditions) {
  return ProgramCompiler(values, access, conditions).compile();
}

}  // namespace firebreak::access
