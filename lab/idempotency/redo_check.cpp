// SPDX-License-Identifier: Apache-2.0
#include "idempotency/redo_check.h"

#include <fmt/format.h>

#include <algorithm>
#include <vector>

#include "idempotency/sequence.h"
#include "kernels/regions/region_builder.h"
#include "program/redo/redo_decision.h"
#include "program/redo/ring_writer.h"

namespace firebreak::idempotency {
namespace {

using Bytes = std::vector<std::byte>;

constexpr std::uint64_t stream = 7;
constexpr std::uint32_t region_count = 0;  // of RedoRing::completed
constexpr std::uint32_t save_count = 1;

abi::RedoArea area_of(const regions::Area& area) {
  return {area.address, area.width_bytes, area.pitch_bytes, area.rows};
}
regions::Area area_of(const abi::RedoArea& area) {
  return {area.address, area.width_bytes, area.pitch_bytes, area.rows};
}

// What the GPU finds in its stream, in order.
struct QueueItem {
  abi::RedoKind kind = abi::RedoKind::Launch;  // or Save, or RegionStart
  std::size_t step = 0;
  abi::RedoSave save{};
  std::uint64_t value = 0;
};

class FaultRun {
 public:
  FaultRun(SequenceBench& bench, const std::vector<SequenceStep>& steps, std::mt19937_64& random,
           RedoCounts& counts)
      : bench_(bench),
        steps_(steps),
        random_(random),
        counts_(counts),
        memory_(sizeof(abi::RedoRing) + abi::redo_capacity_min),
        ring_(*redo::RingWriter::make(memory_.bytes())),
        order_(random()) {}

  void run() {
    const Bytes before = bench_.gpu.snapshot();
    for (const SequenceStep& step : steps_) {
      const auto whole = run_step(bench_.gpu, step, most_step_accesses, order_);
      if (!whole || whole->end != RunEnd::Completed) return;
      access_counts_.push_back(whole->accesses.size());
    }
    const Bytes wanted = bench_.gpu.snapshot();
    bench_.gpu.restore(before);
    queue_all(random_save_limit(random_));
    run_until_fault();
    ++counts_.faults;
    const bool is_damaged = random_() % 10 == 0 && damage();
    go_on(is_damaged);
    if (counts_.problem.empty() && !is_refused_ && bench_.gpu.snapshot() != wanted)
      counts_.problem = "memory differs";
    counts_.equal += is_refused_ ? 0 : 1;
    if (!counts_.problem.empty())
      counts_.problem += fmt::format(", after a fault at item {} of {}{}", fault_at_, queue_.size(),
                                     is_damaged ? ", with a damaged ring" : "");
  }

 private:
  // The host: it is ahead of the GPU.
  void queue_all(std::uint64_t most_saved_bytes) {
    regions::RegionBuilder builder(most_saved_bytes);
    access::DecisionWorkspace workspace;
    std::uint64_t saves = 0;
    for (std::size_t i = 0; i < steps_.size(); ++i) {
      const auto effects = effects_of(bench_.gpu, steps_[i], bench_.summaries, workspace);
      const regions::RegionAnswer answer = builder.add(effects, bench_.gpu.memory());
      if (answer.placement != regions::RegionPlace::Continues) {
        queue_.push_back({abi::RedoKind::RegionStart, i, {}, i + 1});
        ring_.start_region(stream, {region_count, 0, i + 1});
      }
      is_alone_.push_back(answer.placement == regions::RegionPlace::Alone);
      if (is_alone_.back()) ring_.cannot_redo(stream, abi::RedoCause::Unknown);
      for (const regions::ByteRange& range : answer.save_before) {
        const abi::RedoSave save{
            range.begin, range.end - range.begin, kept_.size(), {save_count, 0, ++saves}};
        kept_.resize(kept_.size() + save.size_bytes);
        queue_.push_back({abi::RedoKind::Save, i, save, saves});
        ring_.save(stream, save);
      }
      queue_.push_back({abi::RedoKind::Launch, i, {}, 0});
      note(i);
    }
  }

  void note(std::size_t index) {
    const SequenceStep& step = steps_[index];
    if (step.kind == StepKind::Copy) return ring_.copy(stream, {area_of(step.to), area_of(step.from)});
    if (step.kind == StepKind::Fill)
      return ring_.fill(stream, {area_of(step.to), static_cast<std::uint32_t>(step.value), 1});
    abi::RedoLaunch launch{};
    launch.kernel = step.kernel;
    launch.grid[0] = step.launch.grid.x;
    launch.block[0] = step.launch.block.x;
    ring_.launch(stream, launch, step.launch.parameters);
  }

  void run_until_fault() {
    fault_at_ = random_() % (queue_.size() + 1);
    for (std::size_t i = 0; i < fault_at_; ++i) run_item(queue_[i], false);
    if (fault_at_ < queue_.size()) run_item(queue_[fault_at_], true);
  }

  void run_item(const QueueItem& item, bool is_torn) {
    if (item.kind == abi::RedoKind::RegionStart) {
      if (!is_torn) ring_.completed(region_count) = item.value;
    } else if (item.kind == abi::RedoKind::Save) {
      const std::uint64_t size_bytes = is_torn ? random_() % item.save.size_bytes : item.save.size_bytes;
      const auto from = bench_.gpu.bytes(item.save.from, size_bytes);
      std::copy(from.begin(), from.end(), kept_.begin() + static_cast<std::ptrdiff_t>(item.save.kept_at));
      if (!is_torn) ring_.completed(save_count) = item.value;
    } else {
      const SequenceStep& step = steps_[item.step];
      if (is_torn)
        run_step(bench_.gpu, step, random_() % (access_counts_[item.step] + 1), random_());
      else
        run_step(bench_.gpu, step, most_step_accesses, order_);
    }
  }

  // Anywhere but in the number of the last record: without it that was not written to its end.
  bool damage() {
    const auto log = redo::read_ring(memory_.bytes());
    if (!log || log->entries.empty()) return false;
    const std::size_t last = (log->entries.back().sequence - 1) * abi::redo_unit_bytes;
    const std::size_t at = random_() % (last + 128);
    if (at >= last && at < last + sizeof(std::uint64_t)) return false;
    memory_.bytes()[sizeof(abi::RedoRing) + at] ^= static_cast<std::byte>(1 + random_() % 255);
    return true;
  }

  // Whoever comes after: the ring, the kept copies and the memory are all that it has.
  void go_on(bool is_damaged) {
    const auto log = redo::read_ring(memory_.bytes());
    if (!log) {
      counts_.problem = "the ring cannot be read";
      return;
    }
    const redo::RedoDecision decision = redo::decide(*log);
    if (decision.answer == redo::RedoAnswer::Refuse) return refuse(decision, is_damaged);
    counts_.after_nothing += decision.answer == redo::RedoAnswer::Nothing ? 1 : 0;
    counts_.with_restored += decision.restore.empty() ? 0 : 1;
    for (const std::size_t each : decision.restore) {
      const abi::RedoSave& save = log->entries[each].body.save;
      const auto from = kept_.begin() + static_cast<std::ptrdiff_t>(save.kept_at);
      std::copy_n(from, save.size_bytes, bench_.gpu.bytes(save.from, save.size_bytes).begin());
    }
    for (std::size_t i = decision.first; i < log->entries.size(); ++i) do_again(*log, log->entries[i]);
  }

  // The operation in flight, or the next one, is one that was told to be so.
  void refuse(const redo::RedoDecision& decision, bool is_damaged) {
    is_refused_ = true;
    if (decision.refusal == redo::RedoRefusal::Damaged && is_damaged) {
      ++counts_.damaged;
      return;
    }
    std::size_t step = steps_.size() - 1;
    if (fault_at_ < queue_.size()) step = queue_[fault_at_].step;
    const bool marks = fault_at_ < queue_.size() && queue_[fault_at_].kind == abi::RedoKind::RegionStart;
    if (marks && step > 0) --step;
    ++counts_.refused;
    if (decision.refusal != redo::RedoRefusal::CannotRedo || !is_alone_[step])
      counts_.problem = fmt::format("refused: {}", to_string(decision.refusal));
  }

  void do_again(const redo::RedoLog& log, const redo::RedoEntry& entry) {
    SequenceStep step;
    switch (entry.kind) {
      case abi::RedoKind::Launch: {
        const abi::RedoLaunch& launch = entry.body.launch;
        step.kind = StepKind::Launch;
        step.launch.kernel = fmt::format("k{}", launch.kernel);
        step.launch.grid = {launch.grid[0], 1, 1};
        step.launch.block = {launch.block[0], 1, 1};
        const auto parameters = log.payload(entry);
        step.launch.parameters.assign(parameters.begin(), parameters.end());
        break;
      }
      case abi::RedoKind::Copy:
        step.kind = StepKind::Copy;
        step.to = area_of(entry.body.copy.to);
        step.from = area_of(entry.body.copy.from);
        break;
      case abi::RedoKind::Fill:
        step.kind = StepKind::Fill;
        step.to = area_of(entry.body.fill.to);
        step.value = static_cast<std::byte>(entry.body.fill.value);
        break;
      default:
        return;
    }
    if (!run_step(bench_.gpu, step, most_step_accesses, order_))
      counts_.problem = "what was noted does not run";
  }

  SequenceBench& bench_;
  const std::vector<SequenceStep>& steps_;
  std::mt19937_64& random_;
  RedoCounts& counts_;
  redo::RingMemory memory_;
  redo::RingWriter ring_;
  const std::uint64_t order_;  ///< of the threads of all launches that are not torn
  std::vector<std::uint64_t> access_counts_;
  std::vector<bool> is_alone_;
  std::vector<QueueItem> queue_;
  Bytes kept_;
  std::size_t fault_at_ = 0;
  bool is_refused_ = false;
};

}  // namespace

RedoCounts check_redo(const RedoOptions& options) {
  constexpr int sequences = 8;
  RedoCounts counts;
  std::mt19937_64 random(options.seed);
  while (counts.faults < options.faults && counts.problem.empty()) {
    const std::string text = make_sequence_kernels(random);
    SequenceBench bench;
    if (const Status loaded = bench.load(text); !loaded) {
      counts.problem = to_string(loaded.error());
      return counts;
    }
    for (int i = 0; i < sequences && counts.faults < options.faults && counts.problem.empty(); ++i) {
      bench.gpu.scramble(random());
      const std::vector<SequenceStep> steps = make_sequence(bench.buffers, bench.summaries.size(), random);
      FaultRun(bench, steps, random, counts).run();
    }
    if (!counts.problem.empty()) counts.problem += "\n" + text;
  }
  return counts;
}

std::string to_text(const RedoCounts& counts) {
  std::string text =
      fmt::format("{} faults: {} times memory came out as without ({} of these after nothing, ",
                  counts.faults, counts.equal, counts.after_nothing);
  text += fmt::format("{} with saved bytes put back)\n", counts.with_restored);
  text += fmt::format("{} refused, since what was in flight cannot be done again; {} refused for damage\n",
                      counts.refused, counts.damaged);
  return text + (counts.problem.empty() ? "no problem\n" : "PROBLEM: " + counts.problem + "\n");
}

}  // namespace firebreak::idempotency
