// SPDX-License-Identifier: Apache-2.0
/// What a tenant's process is started with: the program, and its environment by what the agent has said.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "ground/base/clock.h"
#include "ground/os/kernel.h"
#include "shared/abi/wire.h"

namespace firebreak::cli {

/// What a tenant is to have.
enum class Part {
  No,
  IfPossible,  ///< where the agent and this machine give it; else it runs without
  Yes,         ///< or it does not run
};

/// What the operator wants of a tenant.
struct TenantOptions {
  std::string socket_path;
  std::string name;
  Part guard = Part::No;
  Part spare = Part::No;
  bool parking = true;  ///< it enters the core dump mode where the agent parks domains
  bool guard_ipc = false;
  bool report_only = false;
  std::string gpu;
  std::string turn_class;  ///< how urgent its turns are, "live" or "batch"; empty: it is not said
  std::uint32_t sm_percent = 0;
  std::uint32_t standby_sm_percent = 0;  ///< of a standby while it waits; 0: the same
  std::uint32_t memory_mib = 0;
  Milliseconds domain_patience{60'000};  ///< where no agent is there, or no MPS domain takes it now
  bool hides_gpus = false;               ///< its environment says that it sees none
  std::vector<std::string> heeded;       ///< variables of the environment that were taken as wishes
  std::vector<std::string> notes;        ///< what is to be told of it, a line each
  std::vector<std::string> command;
};

/// Takes from our environment what it asks of CUDA, unless the command line has said it. Errors as
/// gpu_wish().
Status heed_environment(TenantOptions& options);

/// Takes back what does not work in that program, with a note. Unsupported: it is not to run without.
Status choose_by_program(TenantOptions& options, const std::string& file);

/// The question where a process of that tenant is to run.
abi::Place place_question(const TenantOptions& options, abi::Role role);

/// The question to follow that process, which was told where to run.
abi::Adopt adopt_question(const TenantOptions& options, abi::Role role, pid_t pid);

/// How the program is to be started where the agent has said that. Errors: PermissionDenied where the agent
/// says what is not its to say; the rest, where something is missing that the tenant is to have. `notes`:
/// what is to be told of it besides.
Result<os::SpawnRequest> start_request(const TenantOptions& options, const abi::Placed& placed,
                                       std::vector<std::string>& notes);

}  // namespace firebreak::cli
