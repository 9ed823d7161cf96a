// SPDX-License-Identifier: Apache-2.0
/// One membership in libfirebreak, with its statuses as Results.
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "firebreak/firebreak.h"
#include "ground/base/result.h"
#include "workloads/common/memory.h"
#include "workloads/common/workload.h"

namespace firebreak::workloads {

/// Owned by one thread. Going out of scope says nothing to the agent: only leave() means that the tenant is
/// done, and whoever ends without it is taken for dead.
class Session final : public Memory {
 public:
  /// Socket, tenant and role come from the environment.
  static Result<Session> join();

  bool is_standby() const { return fb_session_role(session_) == FB_ROLE_STANDBY; }
  /// Memory that outlives this process.
  Result<CUdeviceptr> allocate(const std::string& name, std::uint64_t size_bytes) override;
  Status ready();
  /// Nothing: the tenant has finished and nobody is needed any more.
  Result<std::optional<fb_resume>> wait_for_promotion();
  Status resumed();
  /// The forward state after that step, and what of it the step changed, where that is known.
  /// PermissionDenied: another process is the active one now, or is to be.
  Status commit(CUstream stream, std::uint64_t step, std::span<const std::byte> state,
                const std::optional<std::span<const StateRange>>& changed);
  /// What is still to do. Nobody else has to know where another process is the active one by now.
  Status turn_wanted(std::uint64_t steps);
  /// Waits until it is this tenant's turn to compute; also returns where another process is the active one
  /// now, or is to be: the next commit says so.
  Status turn();
  /// The active becomes the standby of whoever is active now, or of its own. False: it stays what it is,
  /// since nobody is ready; of a fenced one, since it is too late.
  Result<bool> stand_down();
  /// The tenant is done; of a standby it says nothing. Nothing else may follow.
  Status leave();

 private:
  explicit Session(fb_session* session) : session_(session) {}
  Status status_of(fb_status status, const char* call) const;

  fb_session* session_;
  std::vector<fb_change> changes_;  ///< changes of one commit
};

}  // namespace firebreak::workloads
