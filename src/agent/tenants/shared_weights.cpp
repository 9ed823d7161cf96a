// SPDX-License-Identifier: Apache-2.0
#include "agent/tenants/shared_weights.h"

#include <fmt/format.h>

#include <algorithm>
#include <utility>

namespace firebreak::agent {

const SharedWeights::Group* SharedWeights::find(const WeightsName& name) const {
  const auto found = groups_.find(name);
  return found == groups_.end() ? nullptr : &found->second;
}

const vault::Entry* SharedWeights::find(const WeightsName& name, const std::string& piece) const {
  const Group* const group = find(name);
  if (group == nullptr) return nullptr;
  const auto pieces = group->pieces.entries();
  const auto found = std::ranges::find(pieces, piece, &vault::Entry::name);
  return found == pieces.end() ? nullptr : &*found;
}

std::uint64_t SharedWeights::bytes_of(const WeightsName& name) const {
  const Group* const group = find(name);
  return group == nullptr ? 0 : group->pieces.total_bytes();
}

std::size_t SharedWeights::descriptors_here() const {
  std::size_t count = 0;
  for (const auto& [name, group] : groups_) count += group.pieces.descriptors_here();
  return count;
}

/// The lowest that are free.
Result<std::uint64_t> SharedWeights::free_address(std::uint64_t size_bytes) const {
  std::vector<std::pair<std::uint64_t, std::uint64_t>> taken;
  for (const auto& [name, group] : groups_) {
    for (const vault::Entry& each : group.pieces.entries())
      taken.emplace_back(each.address, each.address + each.size_bytes);
  }
  std::ranges::sort(taken);
  std::uint64_t address = first_address;
  for (const auto& [begin, end] : taken) {
    if (begin - address >= size_bytes) return address;
    address = end;
  }
  if (first_address + address_bytes - address >= size_bytes) return address;
  return fail(ErrorCode::ResourceExhausted, "no addresses are left for shared memory of that size");
}

Result<std::uint64_t> SharedWeights::add(const WeightsName& name, vault::Entry piece,
                                         std::uint64_t bytes_elsewhere) {
  const auto found = groups_.find(name);
  if (found != groups_.end() && found->second.is_shared) {
    return fail(ErrorCode::InvalidArgument,
                fmt::format("tenant '{}' has shared its memory: nothing is added to that", name.owner));
  }
  const auto address = free_address(piece.size_bytes);
  if (!address) return address;
  piece.address = *address;
  piece.memory = abi::Memory::Shared;
  Group made{vault::Vault(quota_bytes_)};
  Group& group = found == groups_.end() ? made : found->second;
  if (auto added = group.pieces.add(std::move(piece), bytes_elsewhere); !added) return propagate(added);
  group.tenants.insert(name.owner);
  if (found == groups_.end()) groups_.emplace(name, std::move(made));
  return address;
}

void SharedWeights::put_away(const WeightsName& name, const std::string& piece) {
  if (const auto found = groups_.find(name); found != groups_.end()) found->second.pieces.put_away(piece);
}

void SharedWeights::forget(const WeightsName& name, const std::string& piece) {
  const auto found = groups_.find(name);
  if (found == groups_.end()) return;
  found->second.pieces.forget(piece);
  if (found->second.pieces.entries().empty()) groups_.erase(found);
}

Status SharedWeights::share(const WeightsName& name) {
  const auto found = groups_.find(name);
  if (found == groups_.end()) {
    return fail(ErrorCode::InvalidArgument,
                fmt::format("tenant '{}' has made no memory to share", name.owner));
  }
  if (std::exchange(found->second.is_shared, true))
    return fail(ErrorCode::InvalidArgument, fmt::format("tenant '{}' has shared its memory", name.owner));
  // The owner may have been started anew, and not have asked for what it made before.
  found->second.tenants.insert(name.owner);
  return {};
}

Result<const vault::Entry*> SharedWeights::give(const WeightsName& name, const std::string& piece,
                                                const std::string& tenant) {
  const auto found = groups_.find(name);
  if (found == groups_.end() || (!found->second.is_shared && tenant != name.owner)) {
    return fail(ErrorCode::NotFound, fmt::format("tenant '{}' shares no memory", name.owner));
  }
  const vault::Entry* const entry = find(name, piece);
  if (entry == nullptr) {
    return fail(ErrorCode::InvalidArgument,
                fmt::format("tenant '{}' shares no memory '{}', but other", name.owner, piece));
  }
  found->second.tenants.insert(tenant);
  found->second.nobody_since.reset();
  return entry;
}

void SharedWeights::leave(const std::string& tenant, Monotonic now) {
  for (auto& [name, group] : groups_) {
    const bool had_it = group.tenants.erase(tenant) > 0;
    if (had_it && group.is_shared && group.tenants.empty()) group.nobody_since = now;
  }
}

std::vector<WeightsName> SharedWeights::ended(Monotonic now) const {
  std::vector<WeightsName> names;
  for (const auto& [name, group] : groups_) {
    if (group.nobody_since && now - *group.nobody_since >= lease_) names.push_back(name);
  }
  return names;
}

std::optional<Monotonic> SharedWeights::next_end() const {
  std::optional<Monotonic> next;
  for (const auto& [name, group] : groups_) {
    if (!group.nobody_since) continue;
    const Monotonic end = *group.nobody_since + lease_;
    if (!next || end < *next) next = end;
  }
  return next;
}

void SharedWeights::restore(const WeightsName& name, Group group, Monotonic now) {
  if (group.is_shared && group.tenants.empty()) group.nobody_since = now;
  groups_.insert_or_assign(name, std::move(group));
}

}  // namespace firebreak::agent
