// SPDX-License-Identifier: Apache-2.0
/// What whoever keeps a tenant's two processes does next. Pure: what the agent says goes in.
#pragma once

#include <sys/types.h>

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

namespace firebreak::cli {

/// A tenant, as the agent's status has it.
struct TenantView {
  std::string phase;          ///< pair::Phase
  std::string standby_state;  ///< pair::Standby
  pid_t active = 0;           ///< 0: there is none; both
  pid_t standby = 0;
};

enum class Move {
  Wait,          ///< nothing, until something happens
  StartStandby,  ///< it serves, and nobody could take over
  End,           ///< it is done: whoever still runs, besides who has finished, has nothing to do any more
  GiveUp,        ///< it is lost: nobody of ours can go on with it
};

/// Of the tenant `name` in the document that `firebreak status --json` prints. Empty: it is not in it.
std::optional<TenantView> view_of(const std::string& status_json, const std::string& name);

/// `running`: the processes of ours that have not ended.
Move next_move(const std::optional<TenantView>& tenant, const std::vector<pid_t>& running);

}  // namespace firebreak::cli
