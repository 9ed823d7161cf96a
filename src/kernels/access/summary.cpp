// SPDX-License-Identifier: Apache-2.0
#include "kernels/access/summary.h"

#include <algorithm>
#include <map>
#include <set>
#include <tuple>
#include <unordered_map>
#include <utility>

#include "kernels/access/certainty.h"
#include "kernels/access/hazard.h"
#include "kernels/access/origins.h"
#include "kernels/access/register_flow.h"
#include "kernels/ptx/dump.h"
#include "kernels/ptx/memory_effect.h"

namespace firebreak::access {
namespace {

constexpr std::size_t most_groups = 1'024;
constexpr std::size_t most_conditions = 256;  // limit for one access: others are left out, which says less
constexpr int most_addends = 1'000;
constexpr std::size_t most_parameter_bytes = 32'764;  // CUDA's limit

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
    if (kernel_.parameter_bytes > most_parameter_bytes) {
      summary_.refusal = "its parameters are more than a launch can have";
      return std::move(summary_);
    }
    auto values = std::make_shared<ThreadValues>(find_thread_values(module_, kernel_, budget_));
    values_ = values.get();
    summary_.values = values;
    summary_.refusal = values->refusal;
    if (summary_.refusal.empty()) find_groups();
    if (summary_.refusal.empty()) compile_places();
    if (budget_.is_spent()) summary_.refusal = too_complicated;
    summary_.analysis_steps = budget_.taken();
    if (!summary_.refusal.empty()) {
      KernelSummary refused;
      refused.kernel = summary_.kernel;
      refused.refusal = summary_.refusal;
      refused.analysis_steps = summary_.analysis_steps;
      refused.parameters = std::move(summary_.parameters);
      refused.parameter_bytes = summary_.parameter_bytes;
      return refused;
    }
    note_relevant();
    return std::move(summary_);
  }

 private:
  void find_groups() {
    summary_.hazard = find_kernel_hazard(module_, kernel_);
    summary_.instruction_names.resize(kernel_.instructions.size());
    find_own_reads();
    flow_ = find_register_flow(kernel_, is_own_read_, budget_);
    origins_ = find_origins(values_->pool, flow_.registers, budget_);
    summary_.has_order_in_block = flow_.has_order;
    summary_.reads_shared = flow_.reads_shared;
    CertaintyFinder certainty(*values_, budget_);
    certainty_ = &certainty;
    summary_.counted_loops = certainty.counted_loops();
    add_constants();
    for (const MemoryAccess& access : values_->accesses) {
      if (budget_.is_spent()) return;
      add_group(access);
      if (summary_.groups.size() <= most_groups) continue;
      summary_.refusal = "it has more than " + std::to_string(most_groups) + " accesses";
      return;
    }
  }

  bool comes_before(const MemoryAccess& first, const MemoryAccess& second) {
    if (first.block == second.block) return first.instruction < second.instruction;
    budget_.take(1 + (second.block - std::min(first.block, second.block)) / 16);
    return values_->graph.dominates(first.block, second.block);
  }

  // Other loads may come before the thread's own stores, or from a cache that does not follow them.
  bool is_in_order(const MemoryAccess& read) const {
    const ptx::Instruction& instruction = kernel_.instructions[read.instruction];
    return instruction.opcode == ptx::Opcode::Ld && !instruction.modifiers.non_coherent;
  }

  // The thread reads what it has certainly written itself.
  void find_own_reads() {
    is_own_read_.assign(kernel_.instructions.size(), false);
    std::unordered_map<ExpressionIndex, std::vector<const MemoryAccess*>> stores;
    for (const MemoryAccess& access : values_->accesses)
      if (access.kind == ptx::EffectKind::Write && access.predicate == no_expression &&
          kernel_.instructions[access.instruction].opcode == ptx::Opcode::St)
        stores[access.address].push_back(&access);
    for (const MemoryAccess& read : values_->accesses) {
      if (read.kind != ptx::EffectKind::Read || !is_in_order(read)) continue;
      for (const MemoryAccess* const store : stores[read.address]) {
        if (!budget_.take()) return;
        if (store->width_bytes < read.width_bytes || !comes_before(*store, read)) continue;
        is_own_read_[read.instruction] = true;
        is_read_back_.insert(store->instruction);
      }
    }
  }

  // Whatever it reads in constant memory: the whole variable, or any of the module's.
  void add_constants() {
    std::set<std::uint32_t> read;
    bool is_any = false;
    for (const ptx::Instruction& instruction : kernel_.instructions)
      for (const ptx::MemoryEffect& effect : ptx::memory_effects(instruction)) {
        if (effect.kind == ptx::EffectKind::None || effect.space != ptx::StateSpace::Const) continue;
        const ptx::Operand* const from =
            effect.operand == ptx::no_index ? nullptr : &instruction.operands[effect.operand];
        const bool is_named = from != nullptr && from->kind == ptx::OperandKind::SymbolAddress &&
                              from->symbol.kind == ptx::SymbolKind::ModuleVariable;
        if (is_named) read.insert(from->symbol.index);
        is_any = is_any || !is_named;
        summary_.constant_line = instruction.location.line;
      }
    summary_.reads_constants = is_any || !read.empty();
    for (std::uint32_t i = 0; i < module_.variables.size(); ++i)
      if (is_any ? module_.variables[i].space == ptx::StateSpace::Const : read.contains(i))
        summary_.constants.push_back({i, module_.variables[i].size_bytes});
  }

  // True when all ways to the block are over one edge, but for those that have been there before.
  bool is_only_entry(std::uint32_t block) {
    const auto& predecessors = values_->graph.blocks[block].predecessors;
    std::size_t count = 0;
    for (const std::uint32_t from : predecessors) {
      budget_.take(1 + (from > block ? from - block : 0) / 16);
      count += values_->graph.dominates(block, from) ? 0 : 1;
    }
    return count == 1;
  }

  // The innermost ones first.
  std::vector<AccessCondition> conditions_of(const MemoryAccess& access, bool& has_all) {
    std::vector<AccessCondition> conditions;
    std::uint32_t below = access.block;
    const auto& blocks = values_->graph.blocks;
    has_all = true;
    for (std::uint32_t above = blocks[below].immediate_dominator; above != ptx::no_index && has_all;
         below = above, above = blocks[above].immediate_dominator) {
      budget_.take();
      for (std::size_t i = 0; i < blocks[above].successors.size(); ++i) {
        const std::uint32_t to = blocks[above].successors[i].to;
        const ExpressionIndex predicate = values_->edge_conditions[above][i];
        if (predicate == no_expression || to != below || !is_only_entry(to)) continue;
        has_all = conditions.size() < most_conditions;
        if (has_all) conditions.push_back({predicate, above});
      }
    }
    std::reverse(conditions.begin(), conditions.end());
    if (access.predicate != no_expression) conditions.push_back({access.predicate, ptx::no_index});
    return conditions;
  }

  void add_group(const MemoryAccess& access) {
    if (access.kind == ptx::EffectKind::Read && is_own_read_[access.instruction]) {
      summary_.reads_own_writes = true;
      return;
    }
    const Origin& origin = origins_[values_->pool.resolve(access.address)];
    if (origin.place == Place::OwnMemory && !origin.others.has_address) {
      note_own_memory(access, origin);
      return;
    }
    AccessGroup group;
    group.kind = access.kind;
    group.line = kernel_.instructions[access.instruction].location.line;
    group.instruction = access.instruction;
    group.operand = access.operand;
    group.width_bytes = access.width_bytes;
    group.address = access.address;
    set_base(origin, group.base);
    bool has_all = true;
    group.conditions = conditions_of(access, has_all);
    group.is_certain = certainty_->find(access, group.conditions) && has_all;
    group.is_store = kernel_.instructions[access.instruction].opcode == ptx::Opcode::St;
    group.is_read_back = is_read_back_.contains(access.instruction);
    note_order(access, group);
    find_program(access, group);
    summary_.instruction_names[access.instruction] = name_of(access.instruction);
    summary_.groups.push_back(std::move(group));
  }

  static void set_base(const Origin& origin, AddressBase& base) {
    base.value = origin.value;
    base.has_second = origin.has_second;
    base.second_value = origin.second_value;
    base.others = origin.others;
    if (origin.others.has_address) return;  // an offset of nothing that is known
    if (origin.place == Place::Parameter) base.kind = BaseKind::Parameter;
    if (origin.place == Place::Variable) base.kind = BaseKind::Variable;
  }

  // Notes whether it happens, and where, in the same way in any order of threads.
  void note_order(const MemoryAccess& access, AccessGroup& group) const {
    const ptx::Instruction& instruction = kernel_.instructions[access.instruction];
    ValueOrigins chosen;
    if (instruction.guard.register_index != ptx::no_index)
      chosen.add(flow_.registers[instruction.guard.register_index]);
    const std::uint32_t place = instruction.operands[access.operand].register_index;
    if (place != ptx::no_index) chosen.add(flow_.registers[place]);
    if (certainty_->is_determined(access, group)) return;
    group.by_order = flow_.branches_by_order || chosen.by_order;
    group.by_own = flow_.branches_by_own || chosen.by_own;
  }

  // Notes an access in own memory, whose place there is not followed. It is nowhere else, unless something of
  // its address is a pointer.
  void note_own_memory(const MemoryAccess& access, const Origin& origin) {
    summary_.own_memory.add(origin.others);
    summary_.reads_shared = summary_.reads_shared || access.kind == ptx::EffectKind::Read;
    summary_.has_order_in_block = summary_.has_order_in_block || access.kind == ptx::EffectKind::Atomic;
    if (summary_.hazard.empty())
      summary_.hazard = "line " + std::to_string(kernel_.instructions[access.instruction].location.line) +
                        ": it goes to a computed place in shared or local memory";
  }

  // Accesses that are a constant apart, under the same conditions, share one.
  void find_program(const MemoryAccess& access, AccessGroup& group) {
    MemoryAccess start = access;
    start.address = values_->pool.resolve(start.address);
    const ExpressionPool& pool = values_->pool;
    for (int addends = 0; addends < most_addends; ++addends) {
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
      if (budget_.is_spent()) return;
      CompiledPlace compiled =
          compile_place(*values_, each.block, each.conditions, each.addresses, steps, budget_);
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

  // Decisions ask whether these are pointers, or parts of them.
  void note_origins(const ValueOrigins& origins, std::vector<bool>& used) const {
    if (origins.is_any) used.assign(used.size(), true);
    for (std::size_t i = 0; i < origins.word_count; ++i) {
      const auto [begin, end] = bytes_of_pointers(summary_, origins.words[i]);
      for (std::size_t at = begin; at < end; ++at) used[at] = true;
    }
  }

  void note_whole_words() {
    summary_.whole_words.resize(summary_.parameter_bytes / ValueOrigins::word_bytes);
    for (const ptx::Parameter& parameter : summary_.parameters)
      if (parameter.size_bytes == ValueOrigins::word_bytes &&
          parameter.offset_bytes % ValueOrigins::word_bytes == 0)
        summary_.whole_words[parameter.offset_bytes / ValueOrigins::word_bytes] = true;
  }

  void note_relevant() {
    note_whole_words();
    std::vector<bool> used(summary_.parameter_bytes, false);
    for (const ProgramStep& step : summary_.steps) {
      if (step.kind != StepKind::Evaluate) continue;
      summary_.uses_variables =
          summary_.uses_variables || step.operation == Operation::Variable || summary_.reads_constants;
      if (step.operation != Operation::Parameter) continue;
      for (std::size_t i = 0; i < step.width_bits / 8U; ++i) used[step.value + i] = true;
    }
    note_origins(summary_.own_memory, used);
    for (const AccessGroup& group : summary_.groups) note_origins(group.base.others, used);
    for (std::size_t i = 0; i < used.size(); ++i) {
      if (!used[i]) continue;
      const bool follows = i > 0 && used[i - 1];
      if (!follows) summary_.relevant_parameters.push_back({static_cast<std::uint32_t>(i), 0});
      ++summary_.relevant_parameters.back().size_bytes;
    }
  }

  const ptx::Module& module_;
  const ptx::Function& kernel_;
  Budget budget_;
  const ThreadValues* values_ = nullptr;
  std::vector<bool> is_own_read_;         ///< flags by instruction
  std::set<std::uint32_t> is_read_back_;  ///< instructions
  RegisterFlow flow_;
  std::vector<Origin> origins_;  ///< origins by expression
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
    std::vector<std::uint32_t> programs;  ///< programs of these
  };
  std::map<PlaceKey, std::uint32_t> places_;
  std::map<std::pair<std::uint32_t, ExpressionIndex>, std::uint32_t> programs_;
  std::vector<WaitingPlace> waiting_;  ///< places that wait
  KernelSummary summary_;
};

}  // namespace

std::pair<std::size_t, std::size_t> bytes_of_pointers(const KernelSummary& summary, std::size_t word) {
  const std::size_t begin = std::min<std::size_t>(word * ValueOrigins::word_bytes, summary.parameter_bytes);
  const bool is_whole = word < summary.whole_words.size() && summary.whole_words[word];
  const std::size_t around = is_whole ? 0 : ValueOrigins::word_bytes - 1;
  return {begin - std::min(begin, around),
          std::min<std::size_t>(begin + ValueOrigins::word_bytes + around, summary.parameter_bytes)};
}

KernelSummary summarise(const ptx::Module& module, const ptx::Function& kernel) {
  return Summariser(module, kernel).summarise();
}

}  // namespace firebreak::access
