// SPDX-License-Identifier: Apache-2.0
#include "ground/base/utc.h"

#include <fmt/chrono.h>
#include <fmt/format.h>

namespace firebreak {
namespace {

std::string seconds_of(WallTime at) {
  return fmt::format("{:%Y-%m-%dT%H:%M:%S}", fmt::gmtime(std::chrono::system_clock::to_time_t(at)));
}

}  // namespace

std::string in_utc(WallTime at) { return seconds_of(at) + "Z"; }

std::string in_utc_ms(WallTime at) {
  const auto ms = std::chrono::duration_cast<std::chrono::milliseconds>(at.time_since_epoch()).count() % 1000;
  return fmt::format("{}.{:03}Z", seconds_of(at), ms);
}

}  // namespace firebreak
