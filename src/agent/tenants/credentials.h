// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <sys/types.h>

#include <cstddef>
#include <map>
#include <optional>
#include <string>
#include <string_view>

#include "agent/loop/rights.h"
#include "ground/base/result.h"

namespace firebreak::agent {

/// The owner of a tenant, and what its processes are known by: a token that `firebreak run` gets for the
/// tenant that it starts and passes on. A tenant for which nobody asked for one, since its processes were
/// started by hand, has none; then its user tells them.
class Credentials {
 public:
  /// Makes the tenant that user's from now on, where it is nobody's yet.
  void claim(const std::string& tenant, uid_t user);
  /// None: nobody knows the tenant, or an agent before 0.8 kept it.
  std::optional<uid_t> owner_of(const std::string& tenant) const;
  /// How many tenants are that user's.
  std::size_t count_of(uid_t user) const;

  /// The tenant's, made where it has none.
  Result<std::string> token_of(const std::string& tenant);
  /// True when a peer with that token may be one of the tenant's processes. Takes as long whatever the token
  /// is.
  bool admit(const std::string& tenant, std::string_view token, const Asking& who) const;
  /// Restores what another agent kept.
  void restore(const std::string& tenant, std::string token, std::optional<uid_t> owner);
  /// Empty: it has none.
  std::string known_token_of(const std::string& tenant) const;
  void forget(const std::string& tenant) { known_.erase(tenant); }

 private:
  struct Known {
    std::string token;  ///< empty: none
    std::optional<uid_t> owner;
  };

  std::map<std::string, Known> known_;
};

}  // namespace firebreak::agent
