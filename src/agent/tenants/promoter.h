// SPDX-License-Identifier: Apache-2.0
/// An event's promotions, carried out before anything else: what is decided about tenants
/// (agent/tenants/decide.h), a store and a wake for each that is promoted, and only then their own members.
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

#include "agent/tenants/decide.h"
#include "agent/tenants/tenant.h"
#include "ground/base/clock.h"

namespace firebreak::agent {

/// The result of an event, for who carries out the rest. Tenants by the index at which they were looked at.
struct Decided {
  Effects effects;
  std::vector<Tenant*> tenants;
  struct Promoted {
    std::int64_t at_ns = 0;
    std::uint64_t committed = 0;  ///< step that its predecessor committed: it begins there
  };
  std::vector<Promoted> promoted;  ///< one for each of effects.promotions
};

/// Belongs to the loop's thread. An event: look_at() whom it may concern, then decide().
class Promoter {
 public:
  explicit Promoter(const Clock& clock) : clock_(clock) {}

  /// Reserves room, so that an event of so many tenants allocates nothing before the last promotion.
  void reserve(std::size_t tenants);

  /// Returns its index. The tenant lives until what was decided is carried out.
  std::size_t look_at(Tenant& tenant, bool standby_is_warm);
  /// Decides. When it returns whoever is promoted has been woken, and tenants stand where they stand from now
  /// on. To be given back() when it has been carried out.
  Decided decide(const Happening& happening);
  void give_back(Decided decided);

 private:
  const Clock& clock_;
  std::vector<TenantFacts> facts_;
  Decided decided_;
};

}  // namespace firebreak::agent
