// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <map>
#include <string>
#include <string_view>

#include "base/result.h"

namespace firebreak::agent {

/// By which a tenant's processes are known, besides their user: a token that `firebreak run` gets for the
/// tenant that it starts and passes on. A tenant for which nobody asked for one, since its processes were
/// started by hand, has none.
class Credentials {
 public:
  /// The tenant's, made where it has none.
  Result<std::string> token_of(const std::string& tenant);
  /// Whether that is what the tenant's processes have. Takes as long whatever the token is.
  bool are(const std::string& tenant, std::string_view token) const;
  /// As another agent kept it.
  void restore(const std::string& tenant, std::string token);
  /// Empty: it has none.
  std::string known_token_of(const std::string& tenant) const;
  void forget(const std::string& tenant) { tokens_.erase(tenant); }

 private:
  std::map<std::string, std::string> tokens_;
};

}  // namespace firebreak::agent
