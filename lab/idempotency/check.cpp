// SPDX-License-Identifier: Apache-2.0
#include "idempotency/check.h"

#include <fmt/format.h>

#include <algorithm>
#include <numeric>
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

std::vector<std::uint32_t> shuffled_blocks(const LaunchCase& launch, std::mt19937_64& random) {
  std::vector<std::uint32_t> order(std::size_t{launch.grid.x} * launch.grid.y * launch.grid.z);
  std::iota(order.begin(), order.end(), 0U);
  std::shuffle(order.begin(), order.end(), random);
  return order;
}

// A torn run in any order of blocks, then a whole one: as one whole run.
std::string tear_and_redo(TracedGpu& gpu, const LaunchCase& launch, std::uint64_t access_count,
                          const std::vector<std::byte>& before, const std::vector<std::byte>& after,
                          std::mt19937_64& random) {
  gpu.restore(before);
  const std::uint64_t stop = access_count == 0 ? 0 : random() % access_count;
  const auto torn = gpu.run(launch, stop, shuffled_blocks(launch, random));
  const auto redone = gpu.run(launch, most_accesses);
  if (!torn || !redone) return "it does not run a second time";
  if (gpu.snapshot() == after) return {};
  return fmt::format("torn after {} accesses and done again, memory differs", stop);
}

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
  LaunchReport report;
  const access::LaunchArguments arguments = arguments_of(gpu, launch);
  report.decision = access::decide(summary, arguments, workspace);
  const std::vector<std::byte> before = gpu.snapshot();
  const auto run = gpu.run(launch, most_accesses);
  if (!run) return propagate(run);
  report.end = run->end;
  report.access_count = run->accesses.size();
  report.truth = find_truth(run->accesses);
  const bool is_idempotent = report.decision.verdict == access::Verdict::Idempotent;
  if (summary.refusal.empty())
    report.problem = find_unpredicted(summary, arguments, run->accesses, workspace);
  if (report.problem.empty() && is_idempotent && !report.truth.is_idempotent)
    report.problem = fmt::format("called idempotent, but line {} writes 0x{:x}, which line {} had read",
                                 report.truth.write_line, report.truth.address, report.truth.read_line);
  if (report.problem.empty() && run->end == RunEnd::Completed) {
    const access::OperationEffects effects = access::find_effects(summary, arguments, workspace);
    for (const access::StridedBox& box : effects.certain_writes) report.certain_bytes += bytes_of(box).size();
    report.problem = find_uncertain(effects, run->accesses);
    report.is_free_of_races = effects.decision.verdict == access::Verdict::Idempotent && !effects.may_race;
  }
  if (is_idempotent && report.problem.empty() && run->end == RunEnd::Completed) {
    const std::vector<std::byte> after = gpu.snapshot();
    for (int i = 0; i < tears && report.problem.empty(); ++i, ++report.redo_count)
      report.problem = tear_and_redo(gpu, launch, report.access_count, before, after, random);
  }
  gpu.restore(before);
  return report;
}

}  // namespace firebreak::idempotency
