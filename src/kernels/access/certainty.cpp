// SPDX-License-Identifier: Apache-2.0
#include "kernels/access/certainty.h"

#include <algorithm>

namespace firebreak::access {
namespace {

// All that its last instruction may do is go to one of its successors: no thread ends there. A table of
// branches may have a target at the end of the kernel, which is no block.
bool goes_on(const BasicBlock& block) {
  const auto& successors = block.successors;
  if (successors.size() == 1) return successors[0].condition.register_index == ptx::no_index;
  return successors.size() == 2 && successors[0].condition.register_index != ptx::no_index &&
         successors[1].condition.register_index != ptx::no_index;
}

bool has_unknown(const ExpressionPool& pool, ExpressionIndex predicate) {
  const Expression& node = pool[pool.resolve(predicate)];
  if (node.operation == Operation::And && node.width_bits == 1)
    return has_unknown(pool, node.operands[0]) || has_unknown(pool, node.operands[1]);
  return node.operation == Operation::Unknown;
}

}  // namespace

// The block begins another iteration of a loop around `below`.
bool CertaintyFinder::comes_round(std::uint32_t block, std::uint32_t below) const {
  const ControlFlowGraph& graph = values_.graph;
  return graph.is_header(block) && graph.loops[graph.blocks[block].loop].body[below];
}

bool CertaintyFinder::leads_to(std::uint32_t above, std::uint32_t below) const {
  const ControlFlowGraph& graph = values_.graph;
  std::vector<bool> seen(graph.blocks.size(), false);
  std::vector<std::uint32_t> waiting{above};
  seen[above] = true;
  seen[below] = true;
  while (!waiting.empty()) {
    const std::uint32_t block = waiting.back();
    waiting.pop_back();
    if (!goes_on(graph.blocks[block])) return false;
    for (const FlowEdge& edge : graph.blocks[block].successors) {
      if (edge.to != below && comes_round(edge.to, below)) return false;
      if (seen[edge.to]) continue;
      seen[edge.to] = true;
      waiting.push_back(edge.to);
    }
  }
  return true;
}

bool CertaintyFinder::always_leads_to(std::uint32_t below) {
  if (known_.empty()) known_.resize(values_.graph.blocks.size());
  if (!known_[below]) known_[below] = leads_to(values_.graph.blocks[below].immediate_dominator, below);
  return *known_[below];
}

bool CertaintyFinder::find(const MemoryAccess& access, std::vector<AccessCondition>& conditions) {
  const auto& blocks = values_.graph.blocks;
  std::uint32_t below = access.block;
  for (std::uint32_t above = blocks[below].immediate_dominator; above != ptx::no_index;
       below = above, above = blocks[above].immediate_dominator) {
    const auto asked = std::find_if(conditions.begin(), conditions.end(),
                                    [above](const AccessCondition& each) { return each.block == above; });
    if (always_leads_to(below)) {
      if (asked != conditions.end()) asked->is_needed = false;
    } else if (asked == conditions.end() || has_unknown(values_.pool, asked->predicate)) {
      return false;
    }
  }
  return access.predicate == no_expression || !has_unknown(values_.pool, access.predicate);
}

bool CertaintyFinder::is_counted(std::size_t loop) const {
  const ControlFlowGraph& graph = values_.graph;
  const std::vector<LoopTest>& tests = values_.loop_tests[loop];
  if (tests.size() != 1) return false;
  const Expression& test = values_.pool[values_.pool.resolve(tests[0].goes_on)];
  if (test.operation != Operation::Compare) return false;
  const std::vector<bool>& body = graph.loops[loop].body;
  for (std::uint32_t block = 0; block < graph.blocks.size(); ++block) {
    if (!body[block]) continue;
    if (!goes_on(graph.blocks[block])) return false;
    const auto& successors = graph.blocks[block].successors;
    const bool leaves = std::any_of(successors.begin(), successors.end(),
                                    [&](const FlowEdge& edge) { return !body[edge.to]; });
    if (leaves && block != tests[0].block) return false;
  }
  return true;
}

std::vector<bool> CertaintyFinder::counted_loops() const {
  std::vector<bool> counted(values_.graph.loops.size());
  for (std::size_t loop = 0; loop < counted.size(); ++loop) counted[loop] = is_counted(loop);
  return counted;
}

}  // namespace firebreak::access
