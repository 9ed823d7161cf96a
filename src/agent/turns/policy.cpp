// SPDX-License-Identifier: Apache-2.0
#include "agent/turns/policy.h"

#include <algorithm>
#include <string>

namespace firebreak::turns {
namespace {

class Free final : public Policy {
 public:
  bool is_free() const override { return true; }
  Nanoseconds urgency(const Claim&, Monotonic) const override { return Nanoseconds(0); }
};

class Priority final : public Policy {
 public:
  Nanoseconds urgency(const Claim& claim, Monotonic) const override {
    return claim.its_class == Class::Live ? Nanoseconds(0) : farthest;
  }
};

/// The time that the work takes; whatever its numbers are, the product is one.
Nanoseconds work_of(const Claim& claim) {
  const auto cost =
      static_cast<std::uint64_t>(std::clamp(claim.unit_cost, Nanoseconds(0), Policy::farthest).count());
  const auto farthest = static_cast<std::uint64_t>(Policy::farthest.count());
  if (cost == 0) return Nanoseconds(0);
  return claim.units > farthest / cost ? Policy::farthest
                                       : Nanoseconds(static_cast<std::int64_t>(claim.units * cost));
}

/// The least slack first: what is left until the deadline once the work is done.
class Deadline final : public Policy {
 public:
  Nanoseconds urgency(const Claim& claim, Monotonic now) const override {
    if (!claim.deadline || *claim.deadline > now + farthest) return farthest;
    return (std::max(*claim.deadline, now) - now) - work_of(claim);
  }
};

}  // namespace

Result<const Policy*> policy_named(std::string_view name) {
  static const Free free;
  static const Priority priority;
  static const Deadline deadline;
  if (name == "free") return &free;
  if (name == "priority") return &priority;
  if (name == "deadline") return &deadline;
  return fail(ErrorCode::InvalidArgument, "there is no policy '" + std::string(name) + "'",
              "free, priority or deadline");
}

}  // namespace firebreak::turns
