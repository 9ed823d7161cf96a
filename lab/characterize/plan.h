// SPDX-License-Identifier: Apache-2.0
/// The plan says which run comes next, and how long all of them will take.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "characterize/record.h"
#include "ground/base/clock.h"
#include "ground/base/result.h"
#include "inject/kind.h"

namespace firebreak::characterize {

/// One run that is still to be done.
struct Step {
  std::size_t kind = 0;  ///< its place among the kinds that were asked for
  int repeat = 1;
  std::size_t place = 0;  ///< place in the order of its repeat, from 0
};

/// The kinds that a list names: kinds by their names, classes by their keys ("sm", "mmu_replayable"; dashes
/// do as well), in the catalogue's order; all when it is empty. NotFound names what is neither.
Result<std::vector<const inject::Kind*>> choose_kinds(const std::vector<std::string>& named);

/// First every kind once, then every kind a second time: a plan that is cut short knows something of all.
/// Within one repeat the order is shuffled by the seed, so that no kind always runs in the wake of the same
/// other.
std::vector<Step> plan(std::size_t kinds, int repeat, std::uint64_t seed);

/// The steps that `runs` does not hold yet. Runs with a problem are done again; a kind that was refused once
/// is not asked again.
std::vector<Step> left_of(const std::vector<Step>& steps, const std::vector<std::string>& kinds,
                          const std::vector<Run>& runs);

/// "kind 12 of 41, repeat 3 of 10, about 4 min 10 s left"; without the time while nothing is known of it.
struct Progress {
  std::size_t place = 0;  ///< place of this kind in the order of this repeat, from 0
  std::size_t kinds = 0;
  int repeat = 1;
  int repeats = 1;
  std::size_t steps_done = 0;  ///< steps of this process
  std::size_t steps_left = 0;  ///< counts the current one
  Nanoseconds spent{};
};
std::string to_line(const Progress& progress);

/// "4 min 10 s", "1 h 2 min", "8 s".
std::string duration_words(Nanoseconds duration);

}  // namespace firebreak::characterize
