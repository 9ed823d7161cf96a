// SPDX-License-Identifier: Apache-2.0
#include "agent/domains/placement.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <map>
#include <set>

namespace firebreak::agent {
namespace {

/// Returns the domain in which the tenant's other half must not be: its own, or where that would be.
std::string domain_to_avoid(const std::vector<Site>& sites, const PlacementWish& wish) {
  if (!wish.other_half.empty() || wish.role == abi::Role::Active) return wish.other_half;
  return sites.empty() ? std::string() : sites.front().domain;
}

bool may_be_among(const std::vector<std::string>& uuids, const std::string& wanted) {
  return uuids.empty() ||
         std::ranges::any_of(uuids, [&](const std::string& uuid) { return uuid.starts_with(wanted); });
}

std::vector<Site> on_the_gpu(std::vector<Site> sites, const PlacementWish& wish) {
  // A domain of an agent that was told no GPU has all of them.
  const bool may_be_there = may_be_among(wish.machine_gpus, wish.gpu);
  std::erase_if(sites, [&](const Site& site) {
    return site.gpu.empty() ? !may_be_there : !site.gpu.starts_with(wish.gpu);
  });
  const auto half = std::ranges::find(sites, wish.other_half, &Site::domain);
  if (half == sites.end()) return sites;
  const std::string gpu = half->gpu;
  std::erase_if(sites, [&](const Site& site) { return site.gpu != gpu; });
  return sites;
}

std::string gpus_of(const std::vector<Site>& sites) {
  std::set<std::string> gpus;
  for (const Site& site : sites) gpus.insert(site.gpu);
  return fmt::format("{}", fmt::join(gpus, ", "));
}

std::string reasons(const std::vector<Site>& sites) {
  std::string text;
  for (const Site& site : sites) {
    if (site.takes_clients) continue;
    text += fmt::format("{}{} is {}", text.empty() ? "" : ", ", site.domain, site.why_not);
  }
  return text;
}

}  // namespace

Result<std::string> choose_domain(const std::vector<Site>& sites, const PlacementWish& wish) {
  const std::vector<Site> candidates = on_the_gpu(sites, wish);
  if (!may_be_among(wish.machine_gpus, wish.gpu))
    return fail(ErrorCode::NotFound, fmt::format("there is no GPU '{}'", wish.gpu),
                fmt::format("there is {}", fmt::join(wish.machine_gpus, ", ")));
  if (candidates.empty())
    return fail(ErrorCode::NotFound, "no MPS domain has the GPU " + wish.gpu,
                "the agent has " + gpus_of(sites) + ", and others where its own --gpu names them");
  std::map<std::string, std::size_t> actives_on;
  for (const Site& site : candidates) actives_on[site.gpu] += site.actives;
  const std::string avoided = domain_to_avoid(candidates, wish);
  const Site* best = nullptr;
  for (const Site& site : candidates) {
    if (!site.takes_clients || site.domain == avoided) continue;
    if (best == nullptr || actives_on[site.gpu] < actives_on[best->gpu]) best = &site;
  }
  if (best != nullptr) return best->domain;
  const std::string why_not = reasons(candidates);
  const bool is_for_good = why_not.empty();
  return fail(is_for_good ? ErrorCode::Unavailable : ErrorCode::NotYet,
              "no MPS domain takes the tenant now: " + (is_for_good ? "there is no second one" : why_not),
              is_for_good ? "" : "try again in a moment");
}

}  // namespace firebreak::agent
