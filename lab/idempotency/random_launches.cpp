// SPDX-License-Identifier: Apache-2.0
#include "idempotency/random_launches.h"

#include <fmt/format.h>

#include <random>

#include "idempotency/check.h"
#include "idempotency/random_kernel.h"
#include "kernels/access/describe.h"
#include "kernels/ptx/parse.h"

namespace firebreak::idempotency {
namespace {

void check_kernel(const std::string& text, std::uint64_t launches, std::mt19937_64& random,
                  RandomLaunchCounts& counts) {
  auto module = ptx::parse(text);
  if (!module) {
    counts.problem = to_string(module.error());
    return;
  }
  const access::KernelSummary summary = access::summarise(*module, module->functions.at(0));
  TracedGpu gpu;
  const RandomBuffers buffers = allocate_buffers(gpu);
  if (const Status loaded = gpu.load(*std::move(module)); !loaded) {
    counts.problem = to_string(loaded.error());
    return;
  }
  gpu.scramble(random());
  access::DecisionWorkspace workspace;
  for (std::uint64_t i = 0; i < launches && counts.problem.empty(); ++i) {
    const auto report = check_launch(gpu, summary, make_random_launch(buffers, random), workspace, random);
    counts.problem = report ? report->problem : to_string(report.error());
    if (!counts.problem.empty() || report->end != RunEnd::Completed) {
      ++counts.other_ends;
      continue;
    }
    ++counts.launches;
    counts.truly_idempotent += report->truth.is_idempotent ? 1 : 0;
    counts.called_idempotent += report->decision.verdict == access::Verdict::Idempotent ? 1 : 0;
    counts.redone += report->redo_count;
  }
}

}  // namespace

RandomLaunchCounts check_random_launches(const RandomLaunchOptions& options) {
  RandomLaunchCounts counts;
  std::mt19937_64 random(options.seed);
  for (std::uint64_t i = 0; i < options.kernel_count && counts.problem.empty(); ++i) {
    const std::string text = make_random_kernel(random);
    check_kernel(text, options.launches_per_kernel, random, counts);
    if (!counts.problem.empty()) counts.problem += "\n" + text;
  }
  return counts;
}

std::string to_text(const RandomLaunchCounts& counts) {
  std::string text = fmt::format("{} launches to their end ({} not), {} idempotent by their trace\n",
                                 counts.launches, counts.other_ends, counts.truly_idempotent);
  text += fmt::format("{} called idempotent, {} torn runs of them done again and equal\n",
                      counts.called_idempotent, counts.redone);
  return text + (counts.problem.empty() ? "no problem\n" : "PROBLEM: " + counts.problem + "\n");
}

}  // namespace firebreak::idempotency
