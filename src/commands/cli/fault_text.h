// SPDX-License-Identifier: Apache-2.0
/// The agent's account of its last faults in words (agent/tenants/counts.h). Pure.
#pragma once

#include <sys/types.h>

#include <cstdint>
#include <functional>
#include <nlohmann/json.hpp>
#include <set>
#include <string>
#include <vector>

namespace firebreak::cli {

/// "2026-11-29T08:10:05Z", of a moment of CLOCK_MONOTONIC: agents that are older told no other.
using MomentInUtc = std::function<std::string(std::int64_t at_ns)>;

/// The names of the columns; ends with a newline.
std::string fault_head();
/// One line in these columns; ends with a newline.
std::string fault_line(const nlohmann::json& fault, const MomentInUtc& moment);

/// What a tenant had of it, as one line that ends with a newline; empty: nothing.
std::string fault_line_of(const nlohmann::json& fault, const std::string& tenant, const MomentInUtc& moment);

/// The fault of that id in the list; null: there is none.
const nlohmann::json* find_fault(const nlohmann::json& faults, const std::string& id);

/// All that is known of one: what, who, whom it touched, what each source saw, and NVIDIA's next step for its
/// Xids; ends with a newline.
std::string fault_account(const nlohmann::json& fault, const MomentInUtc& moment);

/// True when that process is in one of the agent's domains: the agent tells of its faults.
bool is_known_in(const nlohmann::json& status, pid_t pid);

/// The list as somebody follows it: what is new in it since the last time.
class FaultNews {
 public:
  /// Those that it has not returned yet, in their order; nothing for what is no list.
  std::vector<nlohmann::json> in(const nlohmann::json& faults);

 private:
  std::set<std::string> told_;
};

}  // namespace firebreak::cli
