// SPDX-License-Identifier: Apache-2.0
#include "kernels/access/thread_values.h"

#include <algorithm>
#include <utility>

namespace firebreak::access {
namespace {

constexpr std::size_t most_instructions = 200'000;
constexpr std::size_t most_blocks = 8'000;
constexpr std::size_t most_edges = 100'000;
constexpr std::size_t most_definitions = 1'000'000;
constexpr std::size_t most_operands = 2'000'000;

// A phi whose operands are one value and itself is that value. Phis of loops inside loops become so one after
// the other.
void remove_trivial_phis(ExpressionPool& pool, Budget& budget) {
  for (bool changed = true; changed && !budget.is_spent();) {
    changed = false;
    for (PhiNode& phi : pool.phis) {
      if (phi.replacement != no_expression) continue;
      ExpressionIndex same = no_expression;
      bool differs = phi.operands.empty();
      budget.take(phi.operands.size());
      for (const ExpressionIndex operand : phi.operands) {
        const ExpressionIndex value = pool.resolve(operand);
        if (value == phi.self || value == same) continue;
        differs = differs || same != no_expression;
        same = value;
        if (differs) break;
      }
      if (differs || same == no_expression) continue;
      phi.replacement = same;
      changed = true;
    }
  }
}

// The block leaves the loop or stays in it, and each iteration asks it.
bool is_test(const ControlFlowGraph& graph, const NaturalLoop& loop, std::uint32_t block) {
  const auto& successors = graph.blocks[block].successors;
  if (!loop.body[block] || successors.size() != 2) return false;
  if (loop.body[successors[0].to] == loop.body[successors[1].to]) return false;
  return std::all_of(loop.latches.begin(), loop.latches.end(),
                     [&](std::uint32_t latch) { return graph.dominates(block, latch); });
}

void find_loop_tests(ThreadValues& values, Budget& budget) {
  const ControlFlowGraph& graph = values.graph;
  for (const NaturalLoop& loop : graph.loops) {
    std::vector<LoopTest>& tests = values.loop_tests.emplace_back();
    if (!budget.take(1 + (graph.blocks.size() - loop.header) / 16)) return;
    for (std::uint32_t block = loop.header; block < graph.blocks.size(); ++block) {
      if (!is_test(graph, loop, block)) continue;
      const bool first_stays = loop.body[graph.blocks[block].successors[0].to];
      const ExpressionIndex goes_on = values.edge_conditions[block][first_stays ? 0 : 1];
      if (goes_on != no_expression) tests.push_back({block, goes_on});
    }
  }
}

}  // namespace

ValueBuilder::ValueBuilder(const ptx::Module& module, const ptx::Function& kernel, ThreadValues& values,
                           Budget& budget)
    : module_(module), kernel_(kernel), values_(values), budget_(budget) {}

std::uint8_t ValueBuilder::width_of(std::uint32_t register_index) const {
  const ptx::Type type = kernel_.registers[register_index].type;
  return type == ptx::Type::Pred ? 1 : static_cast<std::uint8_t>(ptx::size_bytes(type) * 8);
}

void ValueBuilder::refuse(const ptx::Instruction& instruction, const std::string& why) {
  if (values_.refusal.empty())
    values_.refusal = "line " + std::to_string(instruction.location.line) + ": " + why;
}

bool ValueBuilder::all_filled(std::uint32_t block) const {
  const auto& predecessors = values_.graph.blocks[block].predecessors;
  return std::all_of(predecessors.begin(), predecessors.end(),
                     [this](std::uint32_t from) { return filled_[from]; });
}

// Memory counts as the steps do.
bool ValueBuilder::may_go_on() {
  if (values_.pool.is_full() || definitions_.size() > most_definitions || operand_count_ > most_operands)
    budget_.take(Budget::most_steps);
  return budget_.take();
}

ExpressionIndex ValueBuilder::read(std::uint32_t register_index) { return read_in(register_index, block_); }

ExpressionIndex ValueBuilder::read_in(std::uint32_t register_index, std::uint32_t block) {
  const std::size_t bottom = joins_.size();
  return finish_joins(bottom, find_value(register_index, block));
}

// Returns no_expression where it is that of the join that has been pushed, once that is finished.
ExpressionIndex ValueBuilder::find_value(std::uint32_t register_index, std::uint32_t block) {
  std::uint32_t at = block;
  ExpressionIndex value = no_expression;
  while (value == no_expression) {
    budget_.take();
    if (const auto found = definitions_.find(key(at, register_index)); found != definitions_.end()) {
      value = values_.pool.resolve(found->second);
      break;
    }
    const auto& predecessors = values_.graph.blocks[at].predecessors;
    if ((at == 0 && predecessors.empty()) || !may_go_on()) {
      value = values_.pool.unknown(width_of(register_index), UnknownReason::Undefined,
                                   {ptx::no_index, register_index});
    } else if (at != 0 && sealed_[at] && predecessors.size() == 1) {
      at = predecessors.front();
    } else {
      value = values_.pool.phi(width_of(register_index), at);
      definitions_[key(at, register_index)] = value;
      if (!sealed_[at]) {
        incomplete_[at].emplace_back(register_index, value);
      } else {
        joins_.push_back({value, register_index, block, 0, {}});
        return no_expression;
      }
    }
  }
  definitions_[key(block, register_index)] = value;
  return value;
}

// Finishes joins until no more than `bottom` are open. `value` is what the uppermost one, or the caller,
// waits for.
ExpressionIndex ValueBuilder::finish_joins(std::size_t bottom, ExpressionIndex value) {
  while (joins_.size() > bottom) {
    Join& join = joins_.back();
    if (value != no_expression) join.operands.push_back(value);
    const auto& predecessors =
        values_.graph.blocks[values_.pool.phis[values_.pool[join.phi].value].block].predecessors;
    if (join.next < predecessors.size()) {
      value = find_value(join.register_index, predecessors[join.next++]);
      continue;
    }
    set_operands(join);
    value = values_.pool.resolve(join.phi);
    if (join.asked_block != ptx::no_index) definitions_[key(join.asked_block, join.register_index)] = value;
    joins_.pop_back();
  }
  return value;
}

void ValueBuilder::set_operands(Join& join) {
  ExpressionPool& pool = values_.pool;
  ExpressionIndex same = no_expression;
  bool differs = false;
  for (const ExpressionIndex value : join.operands) {
    if (value == join.phi || value == same) continue;
    differs = differs || same != no_expression;
    same = value;
  }
  const auto which = static_cast<std::size_t>(pool[join.phi].value);
  if (pool.phis[which].block == 0) {  // the entry is a loop's header: it is entered from outside, too
    join.operands.push_back(pool.unknown(pool[join.phi].width_bits, UnknownReason::Undefined,
                                         {ptx::no_index, join.register_index}));
    differs = true;
  }
  operand_count_ += join.operands.size();
  budget_.take(join.operands.size());
  pool.phis[which].operands = std::move(join.operands);
  if (!differs && same != no_expression) pool.phis[which].replacement = same;
}

void ValueBuilder::write(std::uint32_t register_index, ExpressionIndex value) {
  if (predicate_ != no_expression && !values_.pool.is_constant(predicate_, 1))
    value = values_.pool.select(predicate_, value, read(register_index));
  definitions_[key(block_, register_index)] = value;
}

ExpressionIndex ValueBuilder::predicate_of(const ptx::Guard& guard) {
  if (guard.register_index == ptx::no_index) return no_expression;
  const ExpressionIndex value = read(guard.register_index);
  return guard.negated ? values_.pool.negate_predicate(value) : value;
}

void ValueBuilder::seal(std::uint32_t block) {
  sealed_[block] = true;
  for (std::size_t i = 0; i < incomplete_[block].size(); ++i) {
    const auto [register_index, phi] = incomplete_[block][i];
    const std::size_t bottom = joins_.size();
    joins_.push_back(
        {phi, register_index, ptx::no_index, 0, {}});  // the block may have another value at its end by now
    finish_joins(bottom, no_expression);
  }
  incomplete_[block] = {};
}

void ValueBuilder::seal_ready() {
  budget_.take(1 + sealed_.size() / 16);
  for (std::uint32_t block = 0; block < sealed_.size(); ++block)
    if (!sealed_[block] && all_filled(block)) seal(block);
}

void ValueBuilder::note_edges() {
  for (const FlowEdge& edge : values_.graph.blocks[block_].successors)
    values_.edge_conditions[block_].push_back(predicate_of(edge.condition));
}

void ValueBuilder::build() {
  const std::size_t count = values_.graph.blocks.size();
  incomplete_.resize(count);
  filled_.assign(count, false);
  sealed_.assign(count, false);
  values_.edge_conditions.resize(count);
  for (block_ = 0; block_ < count && may_go_on(); ++block_) {
    if (!sealed_[block_] && all_filled(block_)) sealed_[block_] = true;
    const BasicBlock& block = values_.graph.blocks[block_];
    for (instruction_ = block.first; instruction_ < block.last && may_go_on(); ++instruction_) {
      const ptx::Instruction& instruction = kernel_.instructions[instruction_];
      predicate_ = predicate_of(instruction.guard);
      translate(*this, instruction);
      predicate_ = no_expression;
    }
    note_edges();
    filled_[block_] = true;
    const auto& successors = block.successors;
    if (std::any_of(successors.begin(), successors.end(),
                    [this](const FlowEdge& edge) { return edge.to <= block_; }))
      seal_ready();
  }
}

// Edges between blocks, at most. Each jump by a table has as many as that.
std::size_t count_edges(const ptx::Function& kernel) {
  std::size_t count = 2 * kernel.labels.size();
  for (const ptx::Instruction& instruction : kernel.instructions)
    if (instruction.opcode == ptx::Opcode::BrxIdx)
      count += kernel.branch_tables[instruction.operands[1].target].targets.size();
  return count;
}

ThreadValues find_thread_values(const ptx::Module& module, const ptx::Function& kernel, Budget& budget) {
  ThreadValues values;
  if (kernel.instructions.size() > most_instructions) {
    values.refusal = "it has more than " + std::to_string(most_instructions) + " instructions";
    return values;
  }
  if (kernel.instructions.empty()) return values;
  if (count_edges(kernel) > most_edges) {
    values.refusal = "it has more than " + std::to_string(most_edges) + " jumps";
    return values;
  }
  values.graph = make_control_flow_graph(module, kernel, budget);
  if (values.graph.blocks.size() > most_blocks)
    values.refusal = "it has more than " + std::to_string(most_blocks) + " basic blocks";
  else if (!values.graph.is_reducible)
    values.refusal = "it has a loop with two entries";
  if (!values.refusal.empty()) return values;
  const auto spend = [&](auto&& part) {
    if (!budget.is_spent()) part();
  };
  spend([&] { ValueBuilder(module, kernel, values, budget).build(); });
  spend([&] { remove_trivial_phis(values.pool, budget); });
  spend([&] { resolve_inductions(values, budget); });
  spend([&] { find_loop_tests(values, budget); });
  if (budget.is_spent()) values.refusal = too_complicated;
  return values;
}

}  // namespace firebreak::access
