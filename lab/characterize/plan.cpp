// SPDX-License-Identifier: Apache-2.0
#include "characterize/plan.h"

#include <fmt/format.h>

#include <algorithm>
#include <random>

#include "inject/catalogue.h"

namespace firebreak::characterize {
namespace {

/// Class keys have underscores; people type dashes.
std::string with_underscores(std::string name) {
  std::ranges::replace(name, '-', '_');
  return name;
}

bool names_kind(const std::string& name, const inject::Kind& kind) {
  return inject::find(name) == &kind || with_underscores(name) == key_of(kind.fault_class);
}

}  // namespace

Result<std::vector<const inject::Kind*>> choose_kinds(const std::vector<std::string>& named) {
  const auto all = inject::catalogue();
  if (named.empty()) return std::vector(all.begin(), all.end());
  for (const std::string& name : named) {
    if (std::ranges::any_of(all, [&](const inject::Kind* kind) { return names_kind(name, *kind); })) continue;
    const inject::Kind* close = inject::closest(name);
    const std::string meant = close == nullptr ? "" : fmt::format("did you mean '{}'? ", close->name);
    return fail(ErrorCode::NotFound, fmt::format("no fault kind or class '{}'", name),
                meant + "`firebreak-lab inject --list` shows all kinds");
  }
  std::vector<const inject::Kind*> chosen;
  for (const inject::Kind* kind : all) {
    if (std::ranges::any_of(named, [&](const std::string& name) { return names_kind(name, *kind); }))
      chosen.push_back(kind);
  }
  return chosen;
}

std::vector<Step> plan(std::size_t kinds, int repeat, std::uint64_t seed) {
  std::vector<Step> steps;
  std::mt19937_64 random(seed);
  for (int i = 1; i <= repeat; ++i) {
    std::vector<Step> round;
    for (std::size_t kind = 0; kind < kinds; ++kind) round.push_back({kind, i, 0});
    // std::shuffle would not do: what it draws is the library's choice, and a seed has to mean the same
    // everywhere.
    for (std::size_t left = round.size(); left > 1; --left)
      std::swap(round[left - 1], round[random() % left]);
    for (std::size_t place = 0; place < round.size(); ++place) round[place].place = place;
    steps.insert(steps.end(), round.begin(), round.end());
  }
  return steps;
}

std::vector<Step> left_of(const std::vector<Step>& steps, const std::vector<std::string>& kinds,
                          const std::vector<Run>& runs) {
  std::vector<Step> left;
  for (const Step& step : steps) {
    const bool done = std::ranges::any_of(runs, [&](const Run& run) {
      if (run.kind != kinds[step.kind] || !run.problem.empty()) return false;
      return !run.refused.empty() || run.repeat == step.repeat;
    });
    if (!done) left.push_back(step);
  }
  return left;
}

std::string duration_words(Nanoseconds duration) {
  const auto seconds = std::chrono::round<std::chrono::seconds>(duration).count();
  if (seconds < 60) return fmt::format("{} s", seconds);
  if (seconds < 3600) return fmt::format("{} min {} s", seconds / 60, seconds % 60);
  return fmt::format("{} h {} min", seconds / 3600, seconds % 3600 / 60);
}

std::string to_line(const Progress& progress) {
  std::string line = fmt::format("kind {} of {}, repeat {} of {}", progress.place + 1, progress.kinds,
                                 progress.repeat, progress.repeats);
  if (progress.steps_done == 0) return line;
  const auto each = progress.spent / static_cast<std::int64_t>(progress.steps_done);
  return line + fmt::format(", about {} left",
                            duration_words(each * static_cast<std::int64_t>(progress.steps_left)));
}

}  // namespace firebreak::characterize
