// SPDX-License-Identifier: Apache-2.0
#include "agent/credentials.h"

#include <utility>

#include "os/self.h"

namespace firebreak::agent {

Result<std::string> Credentials::token_of(const std::string& tenant) {
  const auto known = tokens_.find(tenant);
  if (known != tokens_.end()) return known->second;
  auto token = os::random_token();
  if (!token) return token;
  return tokens_.emplace(tenant, std::move(*token)).first->second;
}

bool Credentials::are(const std::string& tenant, std::string_view token) const {
  const auto known = tokens_.find(tenant);
  if (known == tokens_.end()) return true;
  unsigned different = known->second.size() != token.size() ? 1 : 0;
  for (std::size_t i = 0; i < known->second.size() && i < token.size(); ++i) {
    different |= static_cast<unsigned>(static_cast<unsigned char>(known->second[i]) ^
                                       static_cast<unsigned char>(token[i]));
  }
  return different == 0;
}

void Credentials::restore(const std::string& tenant, std::string token) {
  if (!token.empty()) tokens_.insert_or_assign(tenant, std::move(token));
}

std::string Credentials::known_token_of(const std::string& tenant) const {
  const auto known = tokens_.find(tenant);
  return known == tokens_.end() ? std::string() : known->second;
}

}  // namespace firebreak::agent
