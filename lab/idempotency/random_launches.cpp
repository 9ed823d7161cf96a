// SPDX-License-Identifier: Apache-2.0
#include "idempotency/random_launches.h"

#include <fmt/format.h>

#include <array>
#include <random>

#include "idempotency/check.h"
#include "idempotency/random_kernel.h"
#include "kernels/access/describe.h"
#include "kernels/ptx/parse.h"

namespace firebreak::idempotency {
namespace {

// What is in memory decides what loops and branches do: large numbers, small ones, or hardly any but zero.
std::uint32_t random_mask(std::mt19937_64& random) {
  constexpr std::array<std::uint32_t, 4> masks{~std::uint32_t{0}, 63, 3, 1};
  return masks[random() % masks.size()];
}

// Empty: nothing is wrong.
std::string check_kernel(const std::string& text, const RandomLaunchOptions& options, std::mt19937_64& random,
                         RandomLaunchCounts& counts) {
  auto module = ptx::parse(text);
  if (!module) return to_string(module.error());
  const access::KernelSummary summary =
      access::summarise(*module, module->functions.at(ptx::find_function(*module, "k")));
  TracedGpu gpu;
  const RandomBuffers buffers =
      options.is_adversarial ? allocate_adjacent_buffers(gpu) : allocate_buffers(gpu);
  if (const Status loaded = gpu.load(*std::move(module)); !loaded) return to_string(loaded.error());
  if (!options.is_adversarial) gpu.scramble(random());
  access::DecisionWorkspace workspace;
  for (std::uint64_t i = 0; i < options.launches_per_kernel; ++i) {
    if (options.is_adversarial) gpu.scramble(random(), random_mask(random));
    const LaunchCase launch = options.is_adversarial ? make_adversarial_launch(buffers, random)
                                                     : make_random_launch(buffers, random);
    const auto report = check_launch(gpu, summary, launch, workspace, random);
    if (!report) return to_string(report.error());
    if (!report->problem.empty()) return report->problem;
    if (report->end != RunEnd::Completed) {
      ++counts.other_ends;
      continue;
    }
    ++counts.launches;
    counts.truly_idempotent += report->truth.is_idempotent ? 1 : 0;
    counts.called_idempotent += report->decision.verdict == access::Verdict::Idempotent ? 1 : 0;
    counts.redone += report->redo_count;
  }
  return {};
}

}  // namespace

RandomLaunchCounts check_random_launches(const RandomLaunchOptions& options) {
  RandomLaunchCounts counts;
  std::mt19937_64 seeds(options.seed);
  for (std::uint64_t i = 0; i < options.kernel_count && counts.problems.size() < options.most_problems; ++i) {
    const std::uint64_t seed = seeds();
    std::mt19937_64 random(seed);
    const AdversarialKind kind = options.kind.value_or(adversarial_kinds[i % adversarial_kinds.size()]);
    const std::string text =
        options.is_adversarial ? make_adversarial_kernel(kind, random) : make_random_kernel(random);
    const std::string problem = check_kernel(text, options, random, counts);
    if (!problem.empty()) counts.problems.push_back(problem + "\n" + text);
  }
  return counts;
}

std::string to_text(const RandomLaunchCounts& counts) {
  std::string text = fmt::format("{} launches to their end ({} not), {} idempotent by their trace\n",
                                 counts.launches, counts.other_ends, counts.truly_idempotent);
  text += fmt::format("{} called idempotent, {} torn runs of them done again and equal\n",
                      counts.called_idempotent, counts.redone);
  for (const std::string& problem : counts.problems) text += "PROBLEM: " + problem + "\n";
  return text +
         (counts.problems.empty() ? "no problem\n" : fmt::format("{} problems\n", counts.problems.size()));
}

}  // namespace firebreak::idempotency
