// SPDX-License-Identifier: Apache-2.0
/// Finds what each register of a kernel holds and what each memory instruction touches, as expressions:
/// static single assignment, made on the fly. Internal to src/kernels/access. After Braun et al.: Simple and
/// Efficient Construction of Static Single Assignment Form (2013).
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <unordered_map>
#include <utility>
#include <vector>

#include "kernels/access/budget.h"
#include "kernels/access/control_flow_graph.h"
#include "kernels/access/expression.h"
#include "kernels/ptx/ir.h"

namespace firebreak::access {

/// One access of one instruction to global or generic memory.
struct MemoryAccess {
  std::uint32_t instruction = 0;
  std::uint32_t block = 0;
  ptx::EffectKind kind = ptx::EffectKind::None;
  std::uint32_t operand = 0;
  ptx::StateSpace space = ptx::StateSpace::None;
  std::uint32_t width_bytes = 0;
  ExpressionIndex address = no_expression;    ///< 64 bits
  ExpressionIndex predicate = no_expression;  ///< predicate of the instruction's own guard
};

/// A test that every full iteration of a loop passes: it goes on only where that holds.
struct LoopTest {
  std::uint32_t block = 0;
  ExpressionIndex goes_on = no_expression;
};

struct ThreadValues {
  ControlFlowGraph graph;
  ExpressionPool pool;
  std::vector<MemoryAccess> accesses;
  /// Conditions by block and successor: when the edge is taken. no_expression: always, or not known.
  std::vector<std::vector<ExpressionIndex>> edge_conditions;
  std::vector<std::vector<LoopTest>> loop_tests;            ///< tests by loop
  std::vector<std::vector<ExpressionIndex>> loop_counters;  ///< counters by loop: one for each width
  std::string refusal;  ///< why nothing can be said of the kernel; empty: something can
};

/// Finds the values of an entry with a body. Memory and time are bounded by limits on its size, and by the
/// budget; beyond them it refuses.
ThreadValues find_thread_values(const ptx::Module& module, const ptx::Function& kernel, Budget& budget);

/// Replaces phis of loop headers that grow by the same amount in each iteration: induction.cpp.
void resolve_inductions(ThreadValues& values, Budget& budget);

/// The state while blocks are walked; translate.cpp uses it for one instruction after the other.
class ValueBuilder {
 public:
  ValueBuilder(const ptx::Module& module, const ptx::Function& kernel, ThreadValues& values, Budget& budget);
  /// Stops where the budget is spent.
  void build();

  ExpressionIndex read(std::uint32_t register_index);
  /// Writes under the instruction's guard, if it has one.
  void write(std::uint32_t register_index, ExpressionIndex value);
  void refuse(const ptx::Instruction& instruction, const std::string& why);

  const ptx::Module& module() const { return module_; }
  const ptx::Function& kernel() const { return kernel_; }
  ExpressionPool& pool() { return values_.pool; }
  std::vector<MemoryAccess>& accesses() { return values_.accesses; }
  std::uint32_t block() const { return block_; }
  std::uint32_t instruction() const { return instruction_; }
  ExpressionIndex predicate() const { return predicate_; }
  std::uint8_t width_of(std::uint32_t register_index) const;

 private:
  /// A phi whose operands are being read.
  struct Join {
    ExpressionIndex phi = no_expression;
    std::uint32_t register_index = 0;
    std::uint32_t asked_block = ptx::no_index;  ///< block that asked for the register; no_index: none did
    std::size_t next = 0;                       ///< number of the next predecessor
    std::vector<ExpressionIndex> operands;
  };
  ExpressionIndex read_in(std::uint32_t register_index, std::uint32_t block);
  ExpressionIndex find_value(std::uint32_t register_index, std::uint32_t block);
  ExpressionIndex finish_joins(std::size_t bottom, ExpressionIndex value);
  void set_operands(Join& join);
  bool may_go_on();
  void seal(std::uint32_t block);
  void seal_ready();
  void note_edges();
  ExpressionIndex predicate_of(const ptx::Guard& guard);
  bool all_filled(std::uint32_t block) const;
  static std::uint64_t key(std::uint32_t block, std::uint32_t register_index) {
    return std::uint64_t{block} << 32 | register_index;
  }

  const ptx::Module& module_;
  const ptx::Function& kernel_;
  ThreadValues& values_;
  Budget& budget_;
  std::vector<Join> joins_;  ///< joins, of which each was asked for by the one before
  std::size_t operand_count_ = 0;
  std::unordered_map<std::uint64_t, ExpressionIndex> definitions_;
  std::vector<std::vector<std::pair<std::uint32_t, ExpressionIndex>>>
      incomplete_;  ///< register, phi; by block
  std::vector<bool> sealed_;
  std::vector<bool> filled_;
  std::uint32_t block_ = 0;
  std::uint32_t instruction_ = 0;
  ExpressionIndex predicate_ = no_expression;
};

/// Translates what one instruction computes and touches.
void translate(ValueBuilder& builder, const ptx::Instruction& instruction);

}  // namespace firebreak::access
