// SPDX-License-Identifier: Apache-2.0
#include "idempotency/check.h"

#include <fmt/format.h>

#include <algorithm>
#include <unordered_map>

#include "kernels/access/describe.h"

namespace firebreak::idempotency {
namespace {

constexpr std::uint64_t most_accesses = 30'000;
constexpr int tears = 3;

std::vector<std::uint64_t> bytes_of(const access::StridedBox& box) {
  std::vector<std::uint64_t> starts{static_cast<std::uint64_t>(box.starts.base)};
  for (std::size_t i = 0; i < box.starts.axis_count; ++i) {
    const access::AffineAxis& axis = box.starts.axes[i];
    const std::size_t count = starts.size();
    for (access::Wide k = 1; k <= axis.last; ++k)
      for (std::size_t at = 0; at < count; ++at)
        starts.push_back(starts[at] + static_cast<std::uint64_t>(axis.stride * k));
  }
  std::vector<std::uint64_t> bytes;
  for (const std::uint64_t start : starts)
    for (access::Wide k = 0; k < box.width_bytes; ++k) bytes.push_back(start + static_cast<std::uint64_t>(k));
  return bytes;
}

ptx::EffectKind kind_of(softgpu::GpuAccess access) {
  switch (access) {
    case softgpu::GpuAccess::Load:
      return ptx::EffectKind::Read;
    case softgpu::GpuAccess::Store:
      return ptx::EffectKind::Write;
    default:
      return ptx::EffectKind::Atomic;
  }
}

}  // namespace

// Of the groups of one line and kind, one must allow each access. A read without a group is one of what the
// thread has written itself.
std::string find_unpredicted(const access::KernelSummary& summary, const access::LaunchArguments& arguments,
                             std::span<const softgpu::ObservedAccess> accesses,
                             access::DecisionWorkspace& workspace) {
  std::vector<access::PredictedAccess> predicted;
  for (std::size_t i = 0; i < summary.groups.size(); ++i)
    predicted.push_back(access::predict(summary, i, arguments, workspace));
  for (const softgpu::ObservedAccess& seen : accesses) {
    bool has_group = false;
    bool is_allowed = false;
    for (std::size_t i = 0; i < summary.groups.size() && !is_allowed; ++i) {
      const access::AccessGroup& group = summary.groups[i];
      if (group.line != seen.ptx_line || group.kind != kind_of(seen.access)) continue;
      has_group = true;
      is_allowed = access::allows(predicted[i], seen.address, seen.size_bytes);
    }
    const bool may_be_own = !has_group && seen.access == softgpu::GpuAccess::Load;
    if (!is_allowed && !may_be_own)
      return fmt::format("line {} went to 0x{:x}, which was not predicted", seen.ptx_line, seen.address);
  }
  return {};
}

// Each byte that is certainly written was; what is called free of races was.
std::string find_uncertain(const access::OperationEffects& effects,
                           std::span<const softgpu::ObservedAccess> accesses) {
  std::unordered_map<std::uint64_t, std::uint64_t> writer;  // byte to thread
  bool has_two_writers = false;
  for (const softgpu::ObservedAccess& seen : accesses) {
    if (seen.access == softgpu::GpuAccess::Load) continue;
    for (std::uint64_t byte = seen.address; byte < seen.address + seen.size_bytes; ++byte) {
      const bool is_first = writer.try_emplace(byte, seen.thread).first->second == seen.thread;
      has_two_writers = has_two_writers || !is_first;
    }
  }
  if (effects.decision.verdict != access::Verdict::Idempotent) return {};
  for (const access::StridedBox& box : effects.certain_writes)
    for (const std::uint64_t byte : bytes_of(box))
      if (!writer.contains(byte)) return fmt::format("0x{:x} was not written, but certain to be", byte);
  if (has_two_writers && !effects.values_may_race) return "two threads wrote one byte, which was ruled out";
  for (const softgpu::ObservedAccess& seen : accesses) {
    if (seen.access != softgpu::GpuAccess::Load || effects.may_race) continue;
    for (std::uint64_t byte = seen.address; byte < seen.address + seen.size_bytes; ++byte) {
      const auto found = writer.find(byte);
      if (found != writer.end() && found->second != seen.thread)
        return fmt::format("line {} read what another thread writes, which was ruled out", seen.ptx_line);
    }
  }
  return {};
}

namespace {

// One launch, from one state of memory. Each run has an order of its own but for those that are compared.
class LaunchChecker {
 public:
  LaunchChecker(TracedGpu& gpu, const access::KernelSummary& summary, const LaunchCase& launch,
                access::DecisionWorkspace& workspace, std::mt19937_64& random)
      : gpu_(gpu),
        summary_(summary),
        launch_(launch),
        workspace_(workspace),
        random_(random),
        arguments_(arguments_of(gpu, launch)),
        before_(gpu.snapshot()) {}

  Result<LaunchReport> run() {
    report_.decision = access::decide(summary_, arguments_, workspace_);
    effects_ = access::find_effects(summary_, arguments_, workspace_);
    const auto first = gpu_.run(launch_, most_accesses, random_());
    if (!first) return propagate(first);
    report_.end = first->end;
    report_.access_count = first->accesses.size();
    report_.truth = find_truth(first->accesses);
    report_.problem = judge(*first, report_.truth);
    if (first->end == RunEnd::Completed) {
      for (const access::StridedBox& box : effects_.certain_writes)
        report_.certain_bytes += bytes_of(box).size();
      report_.is_free_of_races = is_known() && !effects_.may_race;
      if (report_.problem.empty() && is_known()) report_.problem = run_otherwise(gpu_.snapshot());
    }
    gpu_.restore(before_);
    return std::move(report_);
  }

 private:
  bool is_called_idempotent() const { return report_.decision.verdict == access::Verdict::Idempotent; }
  bool is_known() const { return effects_.decision.verdict == access::Verdict::Idempotent; }

  std::string judge(const TracedRun& run, const TraceTruth& truth) {
    std::string problem;
    if (summary_.refusal.empty()) problem = find_unpredicted(summary_, arguments_, run.accesses, workspace_);
    if (problem.empty() && is_called_idempotent() && !truth.is_idempotent)
      problem = fmt::format("called idempotent, but line {} writes 0x{:x}, which line {} had read",
                            truth.write_line, truth.address, truth.read_line);
    if (problem.empty() && run.end == RunEnd::Completed) problem = find_uncertain(effects_, run.accesses);
    return problem;
  }

  // Another order is as good; and what was torn in any order and is done again in that one is as if it had
  // run once.
  std::string run_otherwise(const std::vector<std::byte>& first) {
    const std::uint64_t order = random_();
    gpu_.restore(before_);
    const auto second = gpu_.run(launch_, most_accesses, order);
    if (!second || second->end != RunEnd::Completed) return {};
    if (std::string problem = judge(*second, find_truth(second->accesses)); !problem.empty()) return problem;
    const std::vector<std::byte> wanted = gpu_.snapshot();
    if (wanted != first && !effects_.values_may_race)
      return "another order leaves another memory, which was ruled out";
    std::string problem;
    for (int i = 0; i < tears && is_called_idempotent() && problem.empty(); ++i, ++report_.redo_count)
      problem = tear_and_redo(second->accesses.size(), order, wanted);
    return problem;
  }

  std::string tear_and_redo(std::uint64_t access_count, std::uint64_t order,
                            const std::vector<std::byte>& wanted) {
    gpu_.restore(before_);
    const std::uint64_t stop = access_count == 0 ? 0 : random_() % access_count;
    const auto torn = gpu_.run(launch_, stop, random_());
    const auto redone = gpu_.run(launch_, most_accesses, order);
    if (!torn || !redone) return "it does not run a second time";
    if (gpu_.snapshot() == wanted) return {};
    return fmt::format("torn after {} accesses and done again, memory differs", stop);
  }

  TracedGpu& gpu_;
  const access::KernelSummary& summary_;
  const LaunchCase& launch_;
  access::DecisionWorkspace& workspace_;
  std::mt19937_64& random_;
  const access::LaunchArguments arguments_;
  const std::vector<std::byte> before_;
  access::OperationEffects effects_;
  LaunchReport report_;
};

}  // namespace

access::LaunchArguments arguments_of(const TracedGpu& gpu, const LaunchCase& launch) {
  access::LaunchArguments arguments;
  arguments.grid = {launch.grid.x, launch.grid.y, launch.grid.z};
  arguments.block = {launch.block.x, launch.block.y, launch.block.z};
  arguments.parameters = launch.parameters;
  arguments.memory = gpu.memory();
  arguments.variable_addresses = gpu.variable_addresses();
  return arguments;
}

Result<LaunchReport> check_launch(TracedGpu& gpu, const access::KernelSummary& summary,
                                  const LaunchCase& launch, access::DecisionWorkspace& workspace,
                                  std::mt19937_64& random) {
  return LaunchChecker(gpu, summary, launch, workspace, random).run();
}

}  // namespace firebreak::idempotency
