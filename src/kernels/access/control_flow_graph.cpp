// SPDX-License-Identifier: Apache-2.0
#include "kernels/access/control_flow_graph.h"

#include <algorithm>

namespace firebreak::access {
namespace {

using ptx::Instruction;
using ptx::no_index;
using ptx::Opcode;

bool ends_thread(const ptx::Module& module, const ptx::Function& function, const Instruction& instruction) {
  return instruction.opcode == Opcode::Exit || instruction.opcode == Opcode::Ret ||
         instruction.opcode == Opcode::Trap || never_returns(module, function, instruction);
}

class GraphBuilder {
 public:
  GraphBuilder(const ptx::Module& module, const ptx::Function& function, Budget& budget)
      : module_(module),
        function_(function),
        budget_(budget),
        count_(static_cast<std::uint32_t>(function.instructions.size())) {}

  ControlFlowGraph build() {
    find_starts();
    make_blocks();
    order_blocks();
    find_dominators();
    find_loops();
    return std::move(graph_);
  }

 private:
  bool is_jump(const Instruction& instruction) const {
    return instruction.opcode == Opcode::Bra || instruction.opcode == Opcode::BrxIdx;
  }

  // Nobody knows whether an instruction that is not known goes on to the next one.
  bool may_end_thread(const Instruction& instruction) const {
    return instruction.opcode == Opcode::Opaque || ends_thread(module_, function_, instruction);
  }

  void find_starts() {
    starts_.assign(count_ + 1, false);
    starts_[0] = true;
    for (const ptx::BranchTable& table : function_.branch_tables)
      for (const std::uint32_t target : table.targets) starts_[target] = true;
    for (std::uint32_t i = 0; i < count_; ++i) {
      const Instruction& instruction = function_.instructions[i];
      if (instruction.opcode == Opcode::Bra) starts_[instruction.operands[0].target] = true;
      if (is_jump(instruction) || may_end_thread(instruction)) starts_[i + 1] = true;
    }
  }

  void make_blocks() {
    block_of_.assign(count_ + 1, no_index);
    for (std::uint32_t i = 0; i < count_; ++i) {
      if (starts_[i]) {
        raw_.emplace_back();
        raw_.back().first = i;
      }
      block_of_[i] = static_cast<std::uint32_t>(raw_.size()) - 1;
      raw_.back().last = i + 1;
    }
    for (BasicBlock& block : raw_) add_successors(block);
  }

  // A target at the end of the function is a return: no block.
  void add_edge(BasicBlock& block, std::uint32_t instruction, ptx::Guard condition) const {
    if (block_of_[instruction] == no_index)
      block.may_end = true;
    else
      block.successors.push_back({block_of_[instruction], condition});
  }

  void add_successors(BasicBlock& block) const {
    const Instruction& last = function_.instructions[block.last - 1];
    const bool is_guarded = last.guard.register_index != no_index;
    ptx::Guard otherwise = last.guard;
    otherwise.negated = !otherwise.negated;
    if (last.opcode == Opcode::Bra) {
      const std::uint32_t target = last.operands[0].target;
      const bool same = target == block.last;
      add_edge(block, target, same ? ptx::Guard{} : last.guard);
      if (is_guarded && !same) add_edge(block, block.last, otherwise);
    } else if (last.opcode == Opcode::BrxIdx) {
      for (const std::uint32_t target : function_.branch_tables[last.operands[1].target].targets)
        add_edge(block, target, {});
      if (is_guarded) add_edge(block, block.last, {});
    } else if (ends_thread(module_, function_, last)) {
      block.may_end = true;
      if (is_guarded) add_edge(block, block.last, otherwise);
    } else {
      block.may_end = last.opcode == Opcode::Opaque;
      add_edge(block, block.last, {});
    }
  }

  // Depth first, with a stack of our own: a function may have very many blocks.
  std::vector<std::uint32_t> postorder() const {
    std::vector<std::uint32_t> order;
    if (raw_.empty()) return order;
    std::vector<bool> seen(raw_.size(), false);
    std::vector<std::pair<std::uint32_t, std::size_t>> stack{{0, 0}};
    seen[0] = true;
    while (!stack.empty()) {
      auto& [block, next] = stack.back();
      if (next == raw_[block].successors.size()) {
        order.push_back(block);
        stack.pop_back();
        continue;
      }
      const std::uint32_t to = raw_[block].successors[next++].to;
      if (seen[to]) continue;
      seen[to] = true;
      stack.emplace_back(to, 0);
    }
    return order;
  }

  void order_blocks() {
    std::vector<std::uint32_t> order = postorder();
    std::reverse(order.begin(), order.end());
    std::vector<std::uint32_t> place(raw_.size(), no_index);
    for (std::uint32_t i = 0; i < order.size(); ++i) place[order[i]] = i;
    for (const std::uint32_t old : order) {
      graph_.blocks.push_back(std::move(raw_[old]));
      for (FlowEdge& edge : graph_.blocks.back().successors) edge.to = place[edge.to];
    }
    for (std::uint32_t i = 0; i < graph_.blocks.size(); ++i)
      for (const FlowEdge& edge : graph_.blocks[i].successors)
        graph_.blocks[edge.to].predecessors.push_back(i);
  }

  std::uint32_t meet(std::uint32_t a, std::uint32_t b) {
    std::uint64_t steps = 16;
    while (a != b) {
      for (; a > b; ++steps) a = graph_.blocks[a].immediate_dominator;
      for (; b > a; ++steps) b = graph_.blocks[b].immediate_dominator;
    }
    budget_.take(steps / 16);  // steps, each of which is little
    return a;
  }

  // Cooper, Harvey, Kennedy: A Simple, Fast Dominance Algorithm (2001).
  void find_dominators() {
    std::vector<BasicBlock>& blocks = graph_.blocks;
    if (blocks.empty()) return;
    blocks[0].immediate_dominator = 0;
    for (bool changed = true; changed && !budget_.is_spent();) {
      changed = false;
      for (std::uint32_t i = 1; i < blocks.size(); ++i) {
        std::uint32_t dominator = no_index;
        for (const std::uint32_t from : blocks[i].predecessors) {
          if (blocks[from].immediate_dominator == no_index) continue;
          dominator = dominator == no_index ? from : meet(dominator, from);
        }
        changed = changed || dominator != blocks[i].immediate_dominator;
        blocks[i].immediate_dominator = dominator;
      }
    }
    blocks[0].immediate_dominator = no_index;
  }

  void find_loops() {
    std::vector<BasicBlock>& blocks = graph_.blocks;
    for (std::uint32_t header = 0; header < blocks.size() && !budget_.is_spent(); ++header) {
      NaturalLoop loop;
      loop.header = header;
      for (const std::uint32_t from : blocks[header].predecessors) {
        if (from < header) continue;
        budget_.take(1 + (from - header) / 16);
        if (graph_.dominates(header, from))
          loop.latches.push_back(from);
        else
          graph_.is_reducible = false;
      }
      if (!loop.latches.empty()) add_loop(std::move(loop));
    }
  }

  void add_loop(NaturalLoop loop) {
    std::vector<BasicBlock>& blocks = graph_.blocks;
    budget_.take(1 + blocks.size() / 8);
    loop.body.assign(blocks.size(), false);
    loop.body[loop.header] = true;
    std::vector<std::uint32_t> waiting = loop.latches;
    while (!waiting.empty()) {
      const std::uint32_t block = waiting.back();
      waiting.pop_back();
      if (loop.body[block]) continue;
      loop.body[block] = true;
      waiting.insert(waiting.end(), blocks[block].predecessors.begin(), blocks[block].predecessors.end());
    }
    loop.parent = blocks[loop.header].loop;
    const auto index = static_cast<std::uint32_t>(graph_.loops.size());
    for (std::uint32_t i = 0; i < blocks.size(); ++i)
      if (loop.body[i]) blocks[i].loop = index;
    graph_.loops.push_back(std::move(loop));
  }

  const ptx::Module& module_;
  const ptx::Function& function_;
  Budget& budget_;
  std::uint32_t count_;
  std::vector<bool> starts_;
  std::vector<std::uint32_t> block_of_;  ///< block by instruction; the end of the function is in none
  std::vector<BasicBlock> raw_;          ///< blocks in the order of the text
  ControlFlowGraph graph_;
};

}  // namespace

bool ControlFlowGraph::dominates(std::uint32_t above, std::uint32_t below) const {
  while (below > above && below != no_index) below = blocks[below].immediate_dominator;
  return below == above;
}

bool never_returns(const ptx::Module& module, const ptx::Function& function,
                   const ptx::Instruction& instruction) {
  if (instruction.opcode != Opcode::Call) return false;
  const std::uint32_t callee = function.calls[instruction.call_index].function_index;
  if (callee == no_index) return false;
  return !module.functions[callee].has_body && module.functions[callee].name == "__assertfail";
}

ControlFlowGraph make_control_flow_graph(const ptx::Module& module, const ptx::Function& function,
                                         Budget& budget) {
  return GraphBuilder(module, function, budget).build();
}

}  // namespace firebreak::access
