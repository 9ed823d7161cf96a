// SPDX-License-Identifier: Apache-2.0
#include "kernels/access/summary.h"

#include <algorithm>
#include <map>
#include <tuple>
#include <utility>

#include "kernels/access/certainty.h"
#include "kernels/access/hazard.h"
#include "kernels/ptx/dump.h"
#include "kernels/ptx/memory_effect.h"

namespace firebreak::access {
namespace {

constexpr std::size_t most_groups = 1'024;
constexpr int most_depth = 256;

enum class Place : std::uint8_t { None, Parameter, Variable, OwnMemory, Mixed };

// What an address starts from, and how many things it could.
struct Start {
  Place place = Place::None;
  std::uint64_t value = 0;
  bool has_second = false;
  std::uint64_t second_value = 0;

  bool operator==(const Start&) const = default;
};

class BaseFinder {
 public:
  explicit BaseFinder(const ExpressionPool& pool) : pool_(pool) {}

  Start find(ExpressionIndex index, int depth = 0) const {
    if (depth > most_depth) return {Place::Mixed};
    const Expression& node = pool_[pool_.resolve(index)];
    switch (node.operation) {
      case Operation::Parameter:
        return node.width_bits == 64 ? Start{Place::Parameter, node.value} : Start{};
      case Operation::Variable:
        return {Place::Variable, node.value};
      case Operation::SharedAddress:
      case Operation::LocalAddress:
        return {Place::OwnMemory};
      case Operation::Add:
        return sum(find(node.operands[0], depth + 1), find(node.operands[1], depth + 1));
      case Operation::Subtract:
        return find(node.operands[0], depth + 1);
      case Operation::Select:
        return same(find(node.operands[1], depth + 1), find(node.operands[2], depth + 1));
      case Operation::Phi:
        return joined(node, depth);
      default:
        return {};
    }
  }

 private:
  static Start sum(const Start& a, const Start& b) {
    if (a.place == Place::None) return b;
    if (b.place == Place::None) return a;
    if (a.place == Place::Parameter && b.place == Place::Parameter && !a.has_second && !b.has_second)
      return {Place::Parameter, a.value, true, b.value};
    return {Place::Mixed};
  }

  static Start same(const Start& a, const Start& b) { return a == b ? a : Start{Place::Mixed}; }

  // What comes round a loop starts where what comes in does, if it is reached by adding.
  Start joined(const Expression& node, int depth) const {
    const std::vector<ExpressionIndex>& operands = pool_.phis[node.value].operands;
    if (std::find(open_.begin(), open_.end(), node.value) != open_.end()) return {Place::None};
    open_.push_back(node.value);
    Start all;
    bool is_first = true;
    for (const ExpressionIndex operand : operands) {
      const Start one = find(operand, depth + 8);
      if (one.place == Place::None && returns_to(operand, node.value)) continue;
      all = is_first ? one : same(all, one);
      is_first = false;
    }
    open_.pop_back();
    return all;
  }

  // The operand is the phi plus something.
  bool returns_to(ExpressionIndex index, std::uint64_t phi) const {
    for (int depth = 0; depth < most_depth; ++depth) {
      const Expression& node = pool_[pool_.resolve(index)];
      if (node.operation == Operation::Phi) return node.value == phi;
      if (node.operation != Operation::Add && node.operation != Operation::Subtract) return false;
      index = node.operands[0];
      const Expression& other = pool_[pool_.resolve(node.operands[1])];
      if (node.operation == Operation::Add && other.operation == Operation::Phi && other.value == phi)
        return true;
    }
    return false;
  }

  const ExpressionPool& pool_;
  mutable std::vector<std::uint64_t> open_;
};

class Summariser {
 public:
  Summariser(const ptx::Module& module, const ptx::Function& kernel) : module_(module), kernel_(kernel) {
    summary_.kernel = kernel.name;
    summary_.parameters = kernel.parameters;
    summary_.parameter_bytes = kernel.parameter_bytes;
    for (const ptx::Variable& variable : module.variables) summary_.variables.push_back(variable.name);
  }

  KernelSummary summarise() {
    if (!kernel_.is_entry || !kernel_.has_body) {
      summary_.refusal = "it is no kernel with a body";
      return std::move(summary_);
    }
    auto values = std::make_shared<ThreadValues>(find_thread_values(module_, kernel_));
    values_ = values.get();
    summary_.values = values;
    summary_.refusal = values->refusal;
    if (!summary_.refusal.empty()) return std::move(summary_);
    summary_.hazard = find_kernel_hazard(module_, kernel_);
    summary_.instruction_names.resize(kernel_.instructions.size());
    CertaintyFinder certainty(*values);
    certainty_ = &certainty;
    summary_.counted_loops = certainty.counted_loops();
    for (const MemoryAccess& access : values->accesses) {
      add_group(access);
      if (summary_.groups.size() <= most_groups) continue;
      summary_.groups.clear();
      summary_.refusal = "it has more than " + std::to_string(most_groups) + " accesses";
      return std::move(summary_);
    }
    compile_places();
    note_relevant();
    note_order();
    return std::move(summary_);
  }

 private:
  bool comes_before(const MemoryAccess& first, const MemoryAccess& second) const {
    if (first.block == second.block) return first.instruction < second.instruction;
    return values_->graph.dominates(first.block, second.block);
  }

  // The thread reads what it has certainly written itself.
  bool is_own(const MemoryAccess& read) const {
    return std::any_of(values_->accesses.begin(), values_->accesses.end(), [&](const MemoryAccess& write) {
      return write.kind == ptx::EffectKind::Write && write.predicate == no_expression &&
             write.address == read.address && write.width_bytes >= read.width_bytes &&
             kernel_.instructions[write.instruction].opcode == ptx::Opcode::St && comes_before(write, read);
    });
  }

  // All ways to the block are over one edge, but for those that have been there before.
  bool is_only_entry(std::uint32_t block) const {
    const auto& predecessors = values_->graph.blocks[block].predecessors;
    return std::count_if(predecessors.begin(), predecessors.end(),
                         [&](std::uint32_t from) { return !values_->graph.dominates(block, from); }) == 1;
  }

  std::vector<AccessCondition> conditions_of(const MemoryAccess& access) const {
    std::vector<AccessCondition> conditions;
    std::uint32_t below = access.block;
    const auto& blocks = values_->graph.blocks;
    for (std::uint32_t above = blocks[below].immediate_dominator; above != ptx::no_index;
         below = above, above = blocks[above].immediate_dominator) {
      for (std::size_t i = 0; i < blocks[above].successors.size(); ++i) {
        const std::uint32_t to = blocks[above].successors[i].to;
        const ExpressionIndex predicate = values_->edge_conditions[above][i];
        if (predicate != no_expression && to == below && is_only_entry(to))
          conditions.push_back({predicate, above});
      }
    }
    std::reverse(conditions.begin(), conditions.end());
    if (access.predicate != no_expression) conditions.push_back({access.predicate, ptx::no_index});
    return conditions;
  }

  void add_group(const MemoryAccess& access) {
    if (access.kind == ptx::EffectKind::Read && is_own(access)) {
      summary_.reads_own_writes = true;
      return;
    }
    const Start start = BaseFinder(values_->pool).find(access.address);
    if (start.place == Place::OwnMemory) {
      note_own_memory(access);
      summary_.has_order_in_block = summary_.has_order_in_block || access.kind == ptx::EffectKind::Atomic;
      return;
    }
    AccessGroup group;
    group.kind = access.kind;
    group.line = kernel_.instructions[access.instruction].location.line;
    group.instruction = access.instruction;
    group.operand = access.operand;
    group.width_bytes = access.width_bytes;
    group.address = access.address;
    if (start.place == Place::Parameter) group.base.kind = BaseKind::Parameter;
    if (start.place == Place::Variable) group.base.kind = BaseKind::Variable;
    group.base.value = start.value;
    group.base.has_second = start.has_second;
    group.base.second_value = start.second_value;
    group.conditions = conditions_of(access);
    group.is_certain = certainty_->find(access, group.conditions);
    group.is_store = kernel_.instructions[access.instruction].opcode == ptx::Opcode::St;
    find_program(access, group);
    summary_.instruction_names[access.instruction] = name_of(access.instruction);
    summary_.groups.push_back(std::move(group));
  }

  // Where it goes there is not followed.
  void note_own_memory(const MemoryAccess& access) {
    if (summary_.hazard.empty())
      summary_.hazard = "line " + std::to_string(kernel_.instructions[access.instruction].location.line) +
                        ": it goes to a computed place in shared or local memory";
  }

  // Accesses that are a constant apart, under the same conditions, share one.
  void find_program(const MemoryAccess& access, AccessGroup& group) {
    MemoryAccess start = access;
    start.address = values_->pool.resolve(start.address);
    for (const ExpressionPool& pool = values_->pool;;) {
      const Expression& node = pool[start.address];
      if (node.operation != Operation::Add) break;
      const ExpressionIndex addend = pool.resolve(node.operands[1]);
      if (pool[addend].operation != Operation::Constant) break;
      group.offset_bytes += pool[addend].value;
      start.address = pool.resolve(node.operands[0]);
    }
    const std::uint32_t place = find_place(access, group.conditions);
    const auto [found, is_new] = programs_.try_emplace({place, start.address}, summary_.programs.size());
    if (is_new) {
      waiting_[place].addresses.push_back(start.address);
      waiting_[place].programs.push_back(found->second);
      summary_.programs.emplace_back().place = place;
    }
    group.program = found->second;
  }

  std::uint32_t find_place(const MemoryAccess& access, const std::vector<AccessCondition>& conditions) {
    PlaceKey key{values_->graph.blocks[access.block].loop, {}};
    for (const AccessCondition& each : conditions)
      key.conditions.emplace_back(each.predicate, each.block, each.is_needed);
    const auto [found, is_new] = places_.try_emplace(std::move(key), waiting_.size());
    if (is_new) waiting_.push_back({access.block, conditions, {}, {}});
    return found->second;
  }

  void compile_places() {
    StepPool steps;
    for (const WaitingPlace& each : waiting_) {
      CompiledPlace compiled = compile_place(*values_, each.block, each.conditions, each.addresses, steps);
      for (std::size_t i = 0; i < each.programs.size(); ++i) {
        compiled.programs[i].place = static_cast<std::uint32_t>(summary_.places.size());
        summary_.programs[each.programs[i]] = compiled.programs[i];
      }
      if (!summary_.places.empty()) note_common(summary_.places.back(), compiled.place);
      summary_.places.push_back(std::move(compiled.place));
    }
    summary_.steps = steps.take();
    for (const AccessGroup& group : summary_.groups) note_covered(group, summary_.programs[group.program]);
  }

  static void note_covered(const AccessGroup& group, AddressProgram& program) {
    OffsetRange& covered = group.kind == ptx::EffectKind::Read ? program.reads : program.writes;
    const auto begin = static_cast<std::int64_t>(group.offset_bytes);
    const std::int64_t end = begin + group.width_bytes;
    covered = covered.is_empty() ? OffsetRange{begin, end}
                                 : OffsetRange{std::min(covered.begin, begin), std::max(covered.end, end)};
    program.base = group.base;
    program.has_atomics = program.has_atomics || group.kind == ptx::EffectKind::Atomic;
  }

  static void note_common(const AccessPlace& before, AccessPlace& place) {
    const auto differ =
        std::mismatch(place.steps.begin(), place.steps.end(), before.steps.begin(), before.steps.end());
    place.common_step_count = static_cast<std::size_t>(differ.first - place.steps.begin());
  }

  std::string name_of(std::uint32_t instruction) const {
    const std::string text = ptx::dump(module_, kernel_, kernel_.instructions[instruction]);
    const std::size_t start = text.starts_with('@') ? text.find(' ') + 1 : 0;
    return text.substr(start, text.find(' ', start) - start);
  }

  void note_order() {
    for (const ptx::Instruction& instruction : kernel_.instructions) {
      const ptx::MemoryEffect effect = ptx::memory_effects(instruction).front();
      const bool is_shared_atomic =
          effect.kind == ptx::EffectKind::Atomic && effect.space == ptx::StateSpace::Shared;
      summary_.has_order_in_block =
          summary_.has_order_in_block || is_shared_atomic || instruction.opcode == ptx::Opcode::Activemask;
    }
  }

  void note_relevant() {
    std::vector<bool> used(summary_.parameter_bytes, false);
    for (const ProgramStep& step : summary_.steps) {
      if (step.kind != StepKind::Evaluate) continue;
      summary_.uses_variables = summary_.uses_variables || step.operation == Operation::Variable;
      if (step.operation != Operation::Parameter) continue;
      for (std::size_t i = 0; i < step.width_bits / 8U; ++i) used[step.value + i] = true;
    }
    for (std::size_t i = 0; i < used.size(); ++i) {
      if (!used[i]) continue;
      const bool follows = i > 0 && used[i - 1];
      if (!follows) summary_.relevant_parameters.push_back({static_cast<std::uint32_t>(i), 0});
      ++summary_.relevant_parameters.back().size_bytes;
    }
  }

  const ptx::Module& module_;
  const ptx::Function& kernel_;
  const ThreadValues* values_ = nullptr;
  CertaintyFinder* certainty_ = nullptr;
  // `loop` is the innermost one around the access.
  struct PlaceKey {
    std::uint32_t loop = ptx::no_index;
    std::vector<std::tuple<ExpressionIndex, std::uint32_t, bool>> conditions;
    auto operator<=>(const PlaceKey&) const = default;
  };
  struct WaitingPlace {
    std::uint32_t block = 0;
    std::vector<AccessCondition> conditions;
    std::vector<ExpressionIndex> addresses;
    std::vector<std::uint32_t> programs;  ///< of these
  };
  std::map<PlaceKey, std::uint32_t> places_;
  std::map<std::pair<std::uint32_t, ExpressionIndex>, std::uint32_t> programs_;
  std::vector<WaitingPlace> waiting_;  ///< by place
  KernelSummary summary_;
};

}  // namespace

KernelSummary summarise(const ptx::Module& module, const ptx::Function& kernel) {
  return Summariser(module, kernel).summarise();
}

}  // namespace firebreak::access
