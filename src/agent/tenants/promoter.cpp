// SPDX-License-Identifier: Apache-2.0
#include "agent/tenants/promoter.h"

#include <utility>

namespace firebreak::agent {

void Promoter::reserve(std::size_t tenants) {
  facts_.reserve(tenants);
  decided_.effects.reserve(tenants);
  decided_.tenants.reserve(tenants);
  decided_.promoted.reserve(tenants);
}

std::size_t Promoter::look_at(Tenant& tenant, bool standby_is_warm) {
  const auto half = [](const Member& member) { return Half{member.domain, member.pid != 0}; };
  facts_.push_back({tenant.pair, half(tenant.active), half(tenant.standby), standby_is_warm});
  decided_.tenants.push_back(&tenant);
  return decided_.tenants.size() - 1;
}

Decided Promoter::decide(const Happening& happening) {
  agent::decide(facts_, happening, decided_.effects);
  for (const Promotion& promotion : decided_.effects.promotions) {
    Tenant& tenant = *decided_.tenants[promotion.tenant];
    const std::int64_t now_ns = to_ns(clock_.now());
    decided_.promoted.push_back({now_ns, tenant.committed()});
    tenant.promote(promotion.epoch, now_ns);
  }
  for (const Promotion& promotion : decided_.effects.promotions) {
    decided_.tenants[promotion.tenant]->take_turns();
  }
  for (std::size_t i = 0; i < facts_.size(); ++i) decided_.tenants[i]->pair = facts_[i].pair;
  facts_.clear();
  return std::exchange(decided_, {});
}

void Promoter::give_back(Decided decided) {
  decided.effects.clear();
  decided.tenants.clear();
  decided.promoted.clear();
  decided_ = std::move(decided);
}

}  // namespace firebreak::agent
