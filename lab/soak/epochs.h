// SPDX-License-Identifier: Apache-2.0
/// Records who was active in which epoch, as the agents tell it: one process in each.
#pragma once

#include <sys/types.h>

#include <cstdint>
#include <map>
#include <optional>
#include <string>

#include "shared/abi/wire.h"

namespace firebreak::soak {

class Epochs {
 public:
  /// Says what was wrong, in one line; empty: nothing.
  std::optional<std::string> hear(const abi::Event& event);

 private:
  struct Office {
    std::uint32_t epoch = 0;
    std::int64_t pid = 0;
  };
  std::map<std::string, Office> offices_;  ///< the newest, by tenant
};

}  // namespace firebreak::soak
