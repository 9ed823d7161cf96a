// SPDX-License-Identifier: Apache-2.0
#include "kernels/access/certainty.h"

#include <algorithm>

namespace firebreak::access {
namespace {

// True when all that its last instruction may do is go to one of its successors: no thread ends there.
bool goes_on(const BasicBlock& block) { return !block.may_end; }

}  // namespace

// One of the comparisons that have to hold.
bool CertaintyFinder::has_unknown(ExpressionIndex predicate) {
  const ExpressionPool& pool = values_.pool;
  std::vector<ExpressionIndex> waiting{predicate};
  while (!waiting.empty()) {
    if (!budget_.take()) return true;
    const Expression& node = pool[pool.resolve(waiting.back())];
    waiting.pop_back();
    if (node.operation == Operation::Unknown) return true;
    if (node.operation != Operation::And || node.width_bits != 1) continue;
    waiting.push_back(node.operands[0]);
    waiting.push_back(node.operands[1]);
  }
  return false;
}

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
    if (!budget_.take(graph.blocks[block].successors.size() + 1)) return false;
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
  if (!known_[below] && !budget_.take(1 + values_.graph.blocks.size() / 16)) return false;
  if (!known_[below]) known_[below] = leads_to(values_.graph.blocks[below].immediate_dominator, below);
  return *known_[below];
}

// Conditions stand in the order of their blocks, the outermost first; the access's own guard is the last.
bool CertaintyFinder::find(const MemoryAccess& access, std::vector<AccessCondition>& conditions) {
  const auto& blocks = values_.graph.blocks;
  std::uint32_t below = access.block;
  auto asked = conditions.rbegin();
  if (asked != conditions.rend() && asked->block == ptx::no_index) ++asked;
  for (std::uint32_t above = blocks[below].immediate_dominator; above != ptx::no_index;
       below = above, above = blocks[above].immediate_dominator) {
    if (!budget_.take()) return false;
    const bool is_asked = asked != conditions.rend() && asked->block == above;
    if (always_leads_to(below)) {
      for (auto each = asked; each != conditions.rend() && each->block == above; ++each)
        each->is_needed = false;
    } else if (!is_asked || has_unknown(asked->predicate)) {
      return false;
    }
    while (asked != conditions.rend() && asked->block == above) ++asked;
  }
  return access.predicate == no_expression || !has_unknown(access.predicate);
}

bool CertaintyFinder::is_counted(std::size_t loop) const {
  const ControlFlowGraph& graph = values_.graph;
  const std::vector<LoopTest>& tests = values_.loop_tests[loop];
  if (tests.size() != 1) return false;
  // Inside of an inner loop it is asked several times in an iteration, and may end it early.
  if (graph.blocks[tests[0].block].loop != loop) return false;
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

const std::vector<bool>& CertaintyFinder::counted_loops() {
  if (counted_) return *counted_;
  counted_.emplace(values_.graph.loops.size());
  for (std::size_t loop = 0; loop < counted_->size(); ++loop) {
    if (!budget_.take(values_.graph.blocks.size() / 4 + 1)) break;
    (*counted_)[loop] = is_counted(loop);
  }
  return *counted_;
}

// Taken to be so until something says otherwise: a counter is in the test of its own loop.
void CertaintyFinder::find_determined() {
  const ExpressionPool& pool = values_.pool;
  determined_.assign(pool.size(), true);
  for (bool changes = true; changes && !budget_.is_spent();) {
    changes = false;
    for (ExpressionIndex i = 0; i < pool.size(); ++i) {
      budget_.take();
      if (!determined_[i] || is_determined(pool[i])) continue;
      determined_[i] = false;
      changes = true;
    }
  }
}

bool CertaintyFinder::is_determined(const Expression& node) const {
  const ExpressionPool& pool = values_.pool;
  const auto is_fine = [&](ExpressionIndex index) {
    return index == no_expression || determined_[pool.resolve(index)];
  };
  if (node.operation == Operation::Unknown) return false;
  if (node.operation == Operation::Phi) return pool.phis[node.value].replacement != no_expression;
  if (node.operation == Operation::LoopCounter)
    return (*counted_)[node.value] && is_fine(values_.loop_tests[node.value][0].goes_on);
  return std::all_of(node.operands.begin(), node.operands.end(), is_fine);
}

bool CertaintyFinder::is_determined(const MemoryAccess& access, const AccessGroup& group) {
  if (!group.is_certain) return false;
  counted_loops();
  if (determined_.empty()) find_determined();
  const auto is_fine = [&](ExpressionIndex index) { return determined_[values_.pool.resolve(index)]; };
  return !budget_.is_spent() && is_fine(access.address) &&
         std::all_of(group.conditions.begin(), group.conditions.end(),
                     [&](const AccessCondition& each) { return !each.is_needed || is_fine(each.predicate); });
}

}  // namespace firebreak::access
