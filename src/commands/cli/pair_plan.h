// SPDX-License-Identifier: Apache-2.0
/// What whoever keeps a tenant's two processes does next. Pure: what the agent says goes in.
#pragma once

#include <sys/types.h>

#include <optional>
#include <set>
#include <vector>

#include "shared/link/status_view.h"

namespace firebreak::cli {

enum class Move {
  Wait,          ///< nothing, until something happens
  StartStandby,  ///< it serves, and nobody could take over
  HandOver,      ///< one with few multiprocessors serves, though one with all of its share could
  End,           ///< it is done: whoever still runs, besides who has finished, has nothing to do any more
  GiveUp,        ///< it is lost: nobody of ours can go on with it
};

/// `running`: the processes of ours that have not ended; `small`: those that were started to wait, with few
/// multiprocessors and so with little memory.
Move next_move(const std::optional<link::TenantView>& tenant, const std::vector<pid_t>& running,
               const std::set<pid_t>& small = {});

}  // namespace firebreak::cli
