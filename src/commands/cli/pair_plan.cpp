// SPDX-License-Identifier: Apache-2.0
#include "commands/cli/pair_plan.h"

#include <algorithm>

namespace firebreak::cli {

Move next_move(const std::optional<link::TenantView>& tenant, const std::vector<pid_t>& running,
               const std::set<pid_t>& small) {
  // An agent that was started anew by hand knows nobody; those who run go on without it.
  if (!tenant) return running.empty() ? Move::End : Move::Wait;
  if (tenant->phase == pair::Phase::Finished) return Move::End;
  // Who is not its standby is an active: one that ends now, or one that is about to go on there.
  const auto stands_by = [&](pid_t pid) { return pid == tenant->standby; };
  if (tenant->phase == pair::Phase::Lost)
    return std::ranges::all_of(running, stands_by) ? Move::GiveUp : Move::Wait;
  const bool active_runs = std::ranges::count(running, tenant->active) > 0;
  if (tenant->phase == pair::Phase::Empty) return tenant->active == 0 ? Move::End : Move::Wait;
  // With the fenced one still there, it may yet become the standby.
  const bool is_alone = active_runs && running.size() == 1;
  const bool lacks_standby = tenant->standby == 0 && tenant->standby_state == pair::Standby::None;
  if (tenant->phase != pair::Phase::Serving) return Move::Wait;
  if (is_alone && lacks_standby) return Move::StartStandby;
  const bool is_made_to_wait = small.contains(tenant->active) && !small.contains(tenant->standby);
  return active_runs && is_made_to_wait && tenant->standby_state == pair::Standby::Ready ? Move::HandOver
                                                                                         : Move::Wait;
}

}  // namespace firebreak::cli
