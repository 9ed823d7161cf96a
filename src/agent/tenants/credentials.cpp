// SPDX-License-Identifier: Apache-2.0
#include "agent/tenants/credentials.h"

#include <unistd.h>

#include <algorithm>
#include <utility>

#include "ground/os/self.h"

namespace firebreak::agent {
namespace {

bool are_equal(std::string_view known, std::string_view given) {
  unsigned different = known.size() != given.size() ? 1 : 0;
  for (std::size_t i = 0; i < known.size() && i < given.size(); ++i) {
    different |=
        static_cast<unsigned>(static_cast<unsigned char>(known[i]) ^ static_cast<unsigned char>(given[i]));
  }
  return different == 0;
}

}  // namespace

void Credentials::claim(const std::string& tenant, uid_t user) {
  Known& its = known_[tenant];
  if (!its.owner) its.owner = user;
}

std::optional<uid_t> Credentials::owner_of(const std::string& tenant) const {
  const auto its = known_.find(tenant);
  return its == known_.end() ? std::nullopt : its->second.owner;
}

std::size_t Credentials::count_of(uid_t user) const {
  return static_cast<std::size_t>(
      std::ranges::count_if(known_, [user](const auto& each) { return each.second.owner == user; }));
}

Result<std::string> Credentials::token_of(const std::string& tenant) {
  const auto its = known_.find(tenant);
  if (its != known_.end() && !its->second.token.empty()) return its->second.token;
  auto token = os::random_token();
  if (!token) return token;
  known_[tenant].token = *token;
  return token;
}

bool Credentials::admit(const std::string& tenant, std::string_view token, const Asking& who) const {
  const auto its = known_.find(tenant);
  if (its == known_.end()) return true;
  if (!its->second.token.empty()) return are_equal(its->second.token, token);
  return may_see(who, its->second.owner);
}

void Credentials::restore(const std::string& tenant, std::string token, std::optional<uid_t> owner) {
  // Agents before 0.8 served their own user alone.
  known_.insert_or_assign(tenant, Known{std::move(token), owner.value_or(::geteuid())});
}

std::string Credentials::known_token_of(const std::string& tenant) const {
  const auto its = known_.find(tenant);
  return its == known_.end() ? std::string() : its->second.token;
}

}  // namespace firebreak::agent
