// SPDX-License-Identifier: Apache-2.0
#include "idempotency/region_check.h"

#include <fmt/format.h>

#include <algorithm>
#include <set>
#include <unordered_set>
#include <utility>

#include "idempotency/check.h"
#include "idempotency/mutation.h"

namespace firebreak::idempotency {
namespace {

constexpr int tears = 3;

using Bytes = std::vector<std::byte>;

// One sequence on one GPU.
class SequenceChecker {
 public:
  SequenceChecker(SequenceBench& bench, const std::vector<SequenceStep>& steps, std::mt19937_64& random,
                  RegionCounts& counts)
      : bench_(bench), steps_(steps), random_(random), counts_(counts) {}

  // False: some step does not run to its end.
  bool run_once() {
    for (const SequenceStep& step : steps_) {
      before_.push_back(bench_.gpu.snapshot());
      orders_.push_back(random_());
      auto run = run_step(bench_.gpu, step, most_step_accesses, orders_.back());
      if (!run || run->end != RunEnd::Completed) return false;
      runs_.push_back(*std::move(run));
    }
    before_.push_back(bench_.gpu.snapshot());
    return true;
  }

  std::vector<PlannedRegion> plan(std::uint64_t most_saved_bytes) {
    std::vector<PlannedRegion> planned;
    regions::RegionBuilder builder(most_saved_bytes);
    access::DecisionWorkspace workspace;
    for (std::size_t i = 0; i < steps_.size(); ++i) {
      const access::OperationEffects effects = effects_of(bench_.gpu, steps_[i], bench_.summaries, workspace);
      const regions::RegionAnswer answer = builder.add(effects, bench_.gpu.memory());
      ++counts_.operations;
      if (answer.placement == regions::RegionPlace::Alone) {
        ++counts_.alone;
        continue;
      }
      if (answer.placement == regions::RegionPlace::Begins) planned.push_back({i, i, false, {}});
      PlannedRegion& region = planned.back();
      region.last = i + 1;
      region.depends_on_order = builder.depends_on_order();
      region.save_before.push_back(answer.save_before);
      counts_.saving += answer.save_before.empty() ? 0 : 1;
      const bool continues = answer.placement == regions::RegionPlace::Continues;
      if (continues && answer.save_before.empty() && !may_run_again(steps_[i], workspace))
        ++counts_.only_in_region;
    }
    return planned;
  }

  // What of the region, by its trace, is read before it is written, written, and not saved; in words.
  std::string find_conflict(const PlannedRegion& region) const {
    std::unordered_set<std::uint64_t> written;
    std::unordered_set<std::uint64_t> exposed;
    std::set<std::uint64_t> saved;
    for (std::size_t i = region.first; i < region.last; ++i) {
      for (const regions::ByteRange& range : region.save_before[i - region.first])
        for (std::uint64_t byte = range.begin; byte < range.end; ++byte) saved.insert(byte);
      add_step(runs_[i], written, exposed);
    }
    for (const std::uint64_t byte : exposed)
      if (written.contains(byte) && !saved.contains(byte))
        return fmt::format("operations {} to {}: 0x{:x} is read before it is written, and written",
                           region.first, region.last - 1, byte);
    return {};
  }

  std::string tear(const PlannedRegion& region) {
    bench_.gpu.restore(before_[region.first]);
    const std::size_t torn = region.first + random_() % (region.last - region.first);
    std::vector<std::pair<regions::ByteRange, Bytes>> saved;
    std::uint64_t stop = 0;
    for (std::size_t i = region.first; i <= torn; ++i) {
      for (const regions::ByteRange& range : region.save_before[i - region.first]) {
        const auto bytes = bench_.gpu.bytes(range.begin, range.end - range.begin);
        saved.emplace_back(range, Bytes(bytes.begin(), bytes.end()));
      }
      stop = i < torn ? most_step_accesses : random_() % (runs_[i].accesses.size() + 1);
      if (!run_step(bench_.gpu, steps_[i], stop, random_())) return "no run";
    }
    for (const auto& [range, bytes] : saved)
      std::copy(bytes.begin(), bytes.end(), bench_.gpu.bytes(range.begin, bytes.size()).begin());
    for (std::size_t i = region.first; i < region.last; ++i) {
      const std::uint64_t order = region.depends_on_order ? orders_[i] : random_();
      if (!run_step(bench_.gpu, steps_[i], most_step_accesses, order)) return "no run";
    }
    if (bench_.gpu.snapshot() == before_[region.last]) return {};
    return fmt::format("operations {} to {}, torn in {} after {} accesses and done again: memory differs",
                       region.first, region.last - 1, torn, stop);
  }

  void check(const std::vector<PlannedRegion>& planned) {
    for (const PlannedRegion& region : planned) {
      ++counts_.regions;
      counts_.long_regions += region.last - region.first > 1 ? 1 : 0;
      counts_.problem = find_conflict(region);
      for (int i = 0; i < tears && counts_.problem.empty(); ++i, ++counts_.redone)
        counts_.problem = tear(region);
      if (!counts_.problem.empty()) return;
    }
  }

 private:
  bool may_run_again(const SequenceStep& step, access::DecisionWorkspace& workspace) const {
    if (step.kind != StepKind::Launch) return true;
    const access::Decision decision =
        access::decide(bench_.summaries.at(step.kernel), arguments_of(bench_.gpu, step.launch), workspace);
    return decision.verdict == access::Verdict::Idempotent;
  }

  // A thread may read what it has written itself.
  static void add_step(const TracedRun& run, std::unordered_set<std::uint64_t>& written,
                       std::unordered_set<std::uint64_t>& exposed) {
    std::set<std::pair<std::uint64_t, std::uint64_t>> own;
    std::unordered_set<std::uint64_t> reads;
    std::unordered_set<std::uint64_t> writes;
    for (const softgpu::ObservedAccess& access : run.accesses) {
      for (std::uint64_t byte = access.address; byte < access.address + access.size_bytes; ++byte) {
        const bool reads_it = access.access != softgpu::GpuAccess::Store;
        if (reads_it && !own.contains({access.thread, byte}) && !written.contains(byte)) reads.insert(byte);
        if (access.access == softgpu::GpuAccess::Load) continue;
        own.emplace(access.thread, byte);
        writes.insert(byte);
      }
    }
    if (writes.empty()) return;  // whatever it reads, it does nothing
    written.insert(writes.begin(), writes.end());
    exposed.insert(reads.begin(), reads.end());
  }

  SequenceBench& bench_;
  const std::vector<SequenceStep>& steps_;
  std::mt19937_64& random_;
  RegionCounts& counts_;
  std::vector<Bytes> before_;  ///< memory before each step, and after the last
  std::vector<TracedRun> runs_;
  std::vector<std::uint64_t> orders_;  ///< of these
};

// The same sequence with a changed kernel. What was planned for the unchanged one may be wrong for it.
void check_mutant(const std::string& text, const std::vector<SequenceStep>& steps, std::uint64_t seed,
                  std::uint64_t limit, const std::vector<PlannedRegion>& planned, std::mt19937_64& random,
                  RegionCounts& counts) {
  const std::vector<PtxMutant> mutants = make_mutants(text);
  const PtxMutant& mutant = mutants[random() % mutants.size()];
  SequenceBench bench;
  if (!bench.load(mutant.text)) return;
  bench.gpu.scramble(seed);
  SequenceChecker checker(bench, steps, random, counts);
  if (!checker.run_once()) return;
  ++counts.sequences;
  counts.broken += std::any_of(planned.begin(), planned.end(), [&](const PlannedRegion& region) {
    return !checker.find_conflict(region).empty();
  });
  checker.check(checker.plan(limit));
  if (!counts.problem.empty()) counts.problem += "\n" + mutant.what;
}

void check_module(const RegionOptions& options, std::mt19937_64& random, RegionCounts& counts) {
  const std::string text = make_sequence_kernels(random);
  SequenceBench bench;
  if (const Status loaded = bench.load(text); !loaded) {
    counts.problem = to_string(loaded.error()) + "\n" + text;
    return;
  }
  for (std::uint64_t i = 0; i < options.sequences && counts.problem.empty(); ++i) {
    const std::vector<SequenceStep> steps = make_sequence(bench.buffers, bench.summaries.size(), random);
    const std::uint64_t limit = random_save_limit(random);
    const std::uint64_t seed = random();
    bench.gpu.scramble(seed);
    RegionCounts unchanged;
    SequenceChecker checker(bench, steps, random, options.with_mutants ? unchanged : counts);
    if (!checker.run_once()) continue;
    if (options.with_mutants) {
      check_mutant(text, steps, seed, limit, checker.plan(limit), random, counts);
    } else {
      ++counts.sequences;
      checker.check(checker.plan(limit));
    }
    if (!counts.problem.empty()) counts.problem += fmt::format("\nsaving at most {} bytes\n{}", limit, text);
  }
}

}  // namespace

RegionCounts check_random_regions(const RegionOptions& options) {
  RegionCounts counts;
  std::mt19937_64 random(options.seed);
  for (std::uint64_t i = 0; i < options.modules && counts.problem.empty(); ++i)
    check_module(options, random, counts);
  return counts;
}

std::string to_text(const RegionCounts& counts) {
  std::string text = fmt::format("{} sequences of {} operations, {} of which cannot be done again\n",
                                 counts.sequences, counts.operations, counts.alone);
  text += fmt::format("{} regions, {} of several operations; {} times something is saved before\n",
                      counts.regions, counts.long_regions, counts.saving);
  text += fmt::format("{} launches may run again as a part of their region alone\n", counts.only_in_region);
  text += fmt::format("{} torn runs done again and equal\n", counts.redone);
  if (counts.broken > 0)
    text +=
        fmt::format("{} mutants broke a plan of the unchanged kernels, and were refused\n", counts.broken);
  return text + (counts.problem.empty() ? "no problem\n" : "PROBLEM: " + counts.problem + "\n");
}

}  // namespace firebreak::idempotency
