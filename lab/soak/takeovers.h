// SPDX-License-Identifier: Apache-2.0
/// Takeovers as the agent tells them: how many, and how long a tenant waited for its standby that had a fault
/// raised inside it. Pure.
#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <vector>

#include "shared/abi/wire.h"

namespace firebreak::soak {

/// Times in milliseconds after the fault was raised.
struct Waits {
  std::vector<double> promoted_ms;      ///< the agent's decision
  std::vector<double> first_kernel_ms;  ///< the standby's first kernel had completed
};

class Takeovers {
 public:
  void hear(const abi::Event& event);
  std::uint64_t promotions() const { return promotions_; }
  /// Waits of tenants whose standby took over, by the fault's kind.
  const std::map<std::string, Waits>& waits() const { return waits_; }

 private:
  struct Pending {
    std::string kind;
    std::int64_t raised_at_ns = 0;
    std::int64_t promoted_at_ns = 0;  ///< 0: not yet
  };
  std::uint64_t promotions_ = 0;
  std::map<std::string, Pending> pending_;  ///< keyed by tenant
  std::map<std::string, Waits> waits_;
};

}  // namespace firebreak::soak
