// SPDX-License-Identifier: Apache-2.0
/// The agent's status, as `firebreak status --json` prints it, for programs that act on it. What is missing
/// or of another type reads as empty: an agent of another version is no reason to fail.
#pragma once

#include <sys/types.h>

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

namespace firebreak::client {

struct TenantView {
  std::string phase;          ///< pair::Phase
  std::string standby_state;  ///< pair::Standby
  pid_t active = 0;           ///< 0: there is none; both
  pid_t standby = 0;
  std::string active_domain = {};
  std::uint64_t epoch = 0;
  std::uint64_t committed_steps = 0;
};

/// Of the tenant `name`. Empty: it is not in it.
std::optional<TenantView> view_of(const std::string& status_json, const std::string& name);

/// How many tenants it knows.
std::size_t count_tenants(const std::string& status_json);

/// The MPS servers of a domain.
std::vector<pid_t> servers_of(const std::string& status_json, const std::string& domain);

}  // namespace firebreak::client
