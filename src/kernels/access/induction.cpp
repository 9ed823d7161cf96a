// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <optional>
#include <unordered_map>

#include "kernels/access/thread_values.h"

namespace firebreak::access {
namespace {

constexpr int most_depth = 48;  // deeper expressions count as not understood

class InductionFinder {
 public:
  InductionFinder(ThreadValues& values, Budget& budget)
      : values_(values), pool_(values.pool), budget_(budget) {}

  void run() {
    // Phis made below are no candidates.
    const std::size_t count = pool_.phis.size();
    values_.loop_counters.resize(values_.graph.loops.size());
    std::unordered_map<std::uint32_t, std::vector<std::size_t>> phis_of;  // phis by block
    for (std::size_t i = 0; i < count; ++i)
      if (pool_.phis[i].replacement == no_expression) phis_of[pool_.phis[i].block].push_back(i);
    for (std::uint32_t loop = 0; loop < values_.graph.loops.size(); ++loop) {
      for (const std::size_t which : phis_of[values_.graph.loops[loop].header])
        if (budget_.take() && !pool_.is_full()) resolve(loop, which);
      if (pool_.is_full()) budget_.take(Budget::most_steps);
    }
  }

 private:
  // Resolves a loop's header: what comes in, and what comes round.
  void resolve(std::uint32_t loop, std::size_t which) {
    const auto& predecessors = values_.graph.blocks[pool_.phis[which].block].predecessors;
    const std::vector<ExpressionIndex> operands = pool_.phis[which].operands;
    std::vector<ExpressionIndex> from_outside;
    std::vector<ExpressionIndex> from_inside;
    for (std::size_t i = 0; i < operands.size(); ++i) {
      const bool inside = i < predecessors.size() && values_.graph.loops[loop].body[predecessors[i]];
      (inside ? from_inside : from_outside).push_back(pool_.resolve(operands[i]));
    }
    if (from_inside.empty() || from_outside.empty()) return;
    const ExpressionIndex phi = pool_.phis[which].self;
    std::optional<ExpressionIndex> step;
    growths_.clear();
    for (const ExpressionIndex value : from_inside) {
      const std::optional<ExpressionIndex> grown = growth(value, phi, 0);
      if (!grown || (step && *step != *grown)) return;
      step = grown;
    }
    if (!is_invariant(*step, 0)) return;
    const std::uint8_t width = pool_[phi].width_bits;
    const ExpressionIndex start = joined(which, from_outside);
    const ExpressionIndex counter = pool_.leaf(Operation::LoopCounter, width, loop);
    note_counter(loop, counter);
    const ExpressionIndex moved = pool_.binary(Operation::Multiply, width, false, *step, counter);
    pool_.phis[which].replacement = pool_.binary(Operation::Add, width, false, start, moved);
  }

  void note_counter(std::uint32_t loop, ExpressionIndex counter) {
    std::vector<ExpressionIndex>& counters = values_.loop_counters[loop];
    if (std::find(counters.begin(), counters.end(), counter) == counters.end()) counters.push_back(counter);
  }

  ExpressionIndex joined(std::size_t which, const std::vector<ExpressionIndex>& values) {
    bool same = true;
    for (const ExpressionIndex value : values) same = same && value == values.front();
    if (same) return values.front();
    const ExpressionIndex phi = pool_.phi(pool_[values.front()].width_bits, pool_.phis[which].block);
    pool_.phis.back().operands = values;
    pool_.phis.back().joins_entries = true;
    return phi;
  }

  // value - phi, where it is that much more than it on every path. Each value is looked at once.
  std::optional<ExpressionIndex> growth(ExpressionIndex value, ExpressionIndex phi, int depth) {
    if (depth > most_depth || !budget_.take() || pool_.is_full()) return std::nullopt;
    value = pool_.resolve(value);
    if (value == phi) return pool_.constant(pool_[value].width_bits, 0);
    const auto [known, is_new] = growths_.try_emplace(value);
    if (!is_new) return known->second;
    const std::optional<ExpressionIndex> grown = growth_of(pool_[value], phi, depth);
    growths_[value] = grown;
    return grown;
  }

  std::optional<ExpressionIndex> growth_of(const Expression node, ExpressionIndex phi, int depth) {
    if (node.operation == Operation::Add || node.operation == Operation::Subtract) {
      const bool subtracts = node.operation == Operation::Subtract;
      for (const std::size_t side : {std::size_t{0}, std::size_t{1}}) {
        if (side == 1 && subtracts) break;
        const auto grown = growth(node.operands[side], phi, depth + 1);
        if (grown)
          return pool_.binary(node.operation, node.width_bits, false, *grown, node.operands[1 - side]);
      }
      return std::nullopt;
    }
    if (node.operation != Operation::Phi) return std::nullopt;
    std::optional<ExpressionIndex> all;
    const std::vector<ExpressionIndex> operands = pool_.phis[node.value].operands;
    budget_.take(operands.size());
    if (operands.empty() || values_.graph.is_header(pool_.phis[node.value].block)) return std::nullopt;
    for (const ExpressionIndex operand : operands) {
      const auto grown = growth(operand, phi, depth + 8);
      if (!grown || (all && *all != *grown)) return std::nullopt;
      all = grown;
    }
    return all;
  }

  bool is_invariant(ExpressionIndex value, int depth) {
    if (depth > most_depth) return false;
    value = pool_.resolve(value);
    const auto [known, is_new] = invariant_.try_emplace(value, false);
    if (!is_new) return known->second;
    const Expression node = pool_[value];
    if (node.operation == Operation::Phi || node.operation == Operation::LoopCounter ||
        node.operation == Operation::Unknown)
      return false;
    for (const ExpressionIndex operand : node.operands)
      if (operand != no_expression && !is_invariant(operand, depth + 1)) return false;
    invariant_[value] = true;
    return true;
  }

  ThreadValues& values_;
  ExpressionPool& pool_;
  Budget& budget_;
  std::unordered_map<ExpressionIndex, std::optional<ExpressionIndex>> growths_;  ///< answers of one phi
  std::unordered_map<ExpressionIndex, bool> invariant_;  ///< the answer is the same in all loops
};

}  // namespace

void resolve_inductions(ThreadValues& values, Budget& budget) { InductionFinder(values, budget).run(); }

}  // namespace firebreak::access
