// SPDX-License-Identifier: Apache-2.0
/// Basic blocks, dominators and natural loops of one function. Internal to src/kernels/access.
#pragma once

#include <cstdint>
#include <vector>

#include "kernels/access/budget.h"
#include "kernels/ptx/ir.h"

namespace firebreak::access {

/// One way out of a block.
struct FlowEdge {
  std::uint32_t to = ptx::no_index;
  ptx::Guard condition;  ///< taken when this holds; register_index no_index: always, or not known when
};

struct BasicBlock {
  std::uint32_t first = 0;  ///< instructions [first, last)
  std::uint32_t last = 0;
  std::vector<FlowEdge> successors;
  std::vector<std::uint32_t> predecessors;
  bool may_end = false;                               ///< true: a thread may end with its last instruction
  std::uint32_t immediate_dominator = ptx::no_index;  ///< dominator; no_index for the entry
  std::uint32_t loop = ptx::no_index;                 ///< the innermost one around it
};

/// A natural loop: what reaches a latch without going through the header.
struct NaturalLoop {
  std::uint32_t header = 0;
  std::uint32_t parent = ptx::no_index;  ///< the loop around it
  std::vector<std::uint32_t> latches;
  std::vector<bool> body;  ///< membership by block
};

struct ControlFlowGraph {
  /// Reachable blocks in reverse postorder; the entry is 0. A guarded exit ends a block, too.
  std::vector<BasicBlock> blocks;
  std::vector<NaturalLoop> loops;  ///< outer ones before inner ones
  bool is_reducible = true;        ///< false: a loop with two entries; `loops` then lacks it

  bool is_header(std::uint32_t block) const {
    const std::uint32_t loop = blocks[block].loop;
    return loop != ptx::no_index && loops[loop].header == block;
  }
  bool dominates(std::uint32_t above, std::uint32_t below) const;
};

/// Makes the graph of a function that ptx::validate accepts. Where the budget is spent it lacks something.
ControlFlowGraph make_control_flow_graph(const ptx::Module& module, const ptx::Function& function,
                                         Budget& budget);

/// A call of what the driver brings along, which never comes back: the thread ends there as at a trap. A
/// function with a body, or one that another file may bring, may write before.
bool never_returns(const ptx::Module& module, const ptx::Function& function,
                   const ptx::Instruction& instruction);

}  // namespace firebreak::access
