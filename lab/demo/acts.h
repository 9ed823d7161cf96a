// SPDX-License-Identifier: Apache-2.0
/// The acts: the same tenants and the same rogue, three times; and unmodified tenants beside a rogue.
#pragma once

#include <functional>
#include <string>
#include <vector>

#include "demo/play.h"
#include "ground/base/clock.h"
#include "ground/platform/platform.h"

namespace firebreak::demo {

struct Settings {
  std::string fault;               ///< a kind of `firebreak-lab inject --list`
  bool spares_co_clients = false;  ///< the kind is known to end the faulter alone
  std::vector<std::string>
      parked_faults;        ///< kinds of exceptions of an SM; empty: the fourth act is left out
  std::string programs;     ///< the folder of firebreak, firebreakd and the tenants
  std::string directory;    ///< private, short; outputs, sockets and MPS directories go there
  std::string size;         ///< size of the tenants: "small" or "medium"
  std::uint64_t steps = 0;  ///< steps that each tenant takes
  Milliseconds pace{0};     ///< a step takes at least this long, so that fast tenants are not done too soon
  std::uint64_t seed = 1;   ///< decides the tenants' weights and inputs
  Milliseconds patience{150'000};  ///< limit for each thing that is waited for; sanitizers are slow
};

/// Plays all of them. An act that cannot be played to its end says so in its `problem`, and is the last one.
/// `tell` gets one line when an act begins.
Play play(const Settings& settings, platform::Platform& platform, const Clock& clock,
          const std::function<void(const std::string&)>& tell);

}  // namespace firebreak::demo
