// SPDX-License-Identifier: Apache-2.0
#include "characterize/campaign.h"

#include <algorithm>

#include "characterize/plan.h"
#include "characterize/run.h"

namespace firebreak::characterize {
namespace {

std::vector<std::string> names_of(const std::vector<Expected>& expected) {
  std::vector<std::string> names;
  for (const Expected& one : expected) names.push_back(one.kind);
  return names;
}

/// A run that was done again replaces the one with the problem.
void add(Run run, std::vector<Run>& runs) {
  std::erase_if(runs, [&](const Run& other) {
    return other.kind == run.kind && other.repeat == run.repeat && !other.problem.empty();
  });
  runs.push_back(std::move(run));
}

}  // namespace

Result<Ending> carry_out(const Campaign& campaign, const Clock& clock, Results& results) {
  const std::vector<std::string> kinds = names_of(results.expected);
  std::vector<Step> left = left_of(plan(kinds.size(), results.repeat, results.seed), kinds, results.runs);
  const Monotonic began = clock.now();
  Progress progress{0, kinds.size(), 1, results.repeat, 0, 0, {}};
  while (!left.empty()) {
    const Step step = left.front();
    left.erase(left.begin());
    progress.place = step.place;
    progress.repeat = step.repeat;
    progress.steps_left = left.size() + 1;
    progress.spent = clock.now() - began;
    const Nanoseconds each =
        progress.spent / std::max<std::int64_t>(static_cast<std::int64_t>(progress.steps_done), 1);
    if (campaign.budget && progress.spent + each > *campaign.budget) return Ending::OutOfTime;
    campaign.on_progress(to_line(progress));

    bool interrupted = false;
    Run run = run_once(campaign.settings, results.expected[step.kind], step.repeat, clock, interrupted);
    // A machine that was busy for a moment deserves a second try, the GPU's own behaviour does not.
    if (!run.problem.empty() && !interrupted) {
      const std::string first = run.problem;
      run = run_once(campaign.settings, results.expected[step.kind], step.repeat, clock, interrupted);
      run.notes.push_back("second try, after: " + first);
    }
    if (interrupted) return Ending::Interrupted;
    if (!run.refused.empty()) std::erase_if(left, [&](const Step& other) { return other.kind == step.kind; });
    add(std::move(run), results.runs);
    ++progress.steps_done;
    results.finished = left.empty();
    if (Status told = campaign.on_run(results); !told) return propagate(told);
  }
  results.finished = true;
  return Ending::Finished;
}

}  // namespace firebreak::characterize
