// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <chrono>
#include <cstdint>
#include <functional>
#include <optional>

#include "ground/base/clock.h"

namespace firebreak::watch {

/// How many pieces of work a process's GPU has done; empty while it has none to do.
using ReadProgress = std::function<std::optional<std::uint64_t>()>;

struct ProgressOptions {
  Nanoseconds patience = std::chrono::seconds(2);
  /// Readings in that time; each wakes us once.
  int readings = 4;
};

}  // namespace firebreak::watch
