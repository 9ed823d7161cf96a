// SPDX-License-Identifier: Apache-2.0
/// Results hold all runs of one machine, and are kept in one file.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "characterize/judgement.h"
#include "characterize/record.h"
#include "ground/base/result.h"
#include "ground/platform/machine.h"

namespace firebreak::characterize {

struct Results {
  platform::Machine machine;  ///< its date is the day of the first run
  std::string command;
  std::uint64_t seed = 1;
  int repeat = 1;                  ///< how often each kind was to run
  double softgpu_speed = 1;        ///< the software GPU's delays were divided by this; 1 on a real GPU
  bool finished = false;           ///< true once every kind has run as often as it was to
  std::vector<Expected> expected;  ///< kinds that were asked for, in the catalogue's order
  std::vector<Run> runs;           ///< sorted as they ran
};

/// Writes a `summary` of the runs beside them (see summary.h).
std::string to_json(const Results& results);
/// Protocol when the text is no such result.
Result<Results> parse_results(const std::string& text);

/// Tells whether runs of both may be mixed: machine, driver, build, seed and speed are the same.
/// InvalidArgument says in one line what differs.
Status same_origin(const Results& before, const Results& now);

/// Replaces the file as a whole, so that a reader, or a power cut, never meets half of it.
Status write_file(const std::string& path, const std::string& text);
/// NotFound when there is none.
Result<std::string> read_file(const std::string& path);

}  // namespace firebreak::characterize
