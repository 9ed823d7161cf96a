// SPDX-License-Identifier: Apache-2.0
/// How urgent a tenant's work is, in three ways behind one interface. Pure.
#pragma once

#include <cstdint>
#include <optional>
#include <string_view>

#include "ground/base/clock.h"
#include "ground/base/result.h"

namespace firebreak::turns {

enum class Class {
  Batch,  ///< nobody waits for its next result
  Live,   ///< somebody does
};

/// What a tenant wants of its GPU, as it says itself: any of it may be untrue.
struct Claim {
  std::string_view tenant;
  Class its_class = Class::Batch;
  std::uint64_t units = 0;            ///< steps that are still to do; 0: it wants nothing
  std::optional<Monotonic> deadline;  ///< time by which they are to be done; none: some time
  Nanoseconds unit_cost{0};           ///< time that one of them takes
  bool was_held = false;              ///< the agent before us had it wait
  std::string user = {};              ///< whose it is, by the kernel's word
};

class Policy {
 public:
  virtual ~Policy() = default;
  /// True: everybody computes whenever it wants to, and nobody is asked how urgent it is.
  virtual bool is_free() const { return false; }
  /// Less is more urgent. Between -farthest and farthest.
  virtual Nanoseconds urgency(const Claim& claim, Monotonic now) const = 0;

  /// A deadline beyond it is none.
  static constexpr Nanoseconds farthest = std::chrono::hours(24);
};

/// "free", "priority" or "deadline"; InvalidArgument. The policy lives for ever.
Result<const Policy*> policy_named(std::string_view name);

}  // namespace firebreak::turns
