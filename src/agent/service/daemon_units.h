// SPDX-License-Identifier: Apache-2.0
/// The units in which the service manager has MPS daemons, so that what is done to the agent's service does
/// not concern them.
#pragma once

#include <sys/types.h>

#include <string>

#include "agent/domains/mps/domain.h"
#include "agent/service/service_manager.h"
#include "ground/base/result.h"

namespace firebreak::agent {

/// With its servers: nothing that binds this service binds them (docs/how/security.md), and what is done to
/// all of it, as a kill, does not concern them.
Result<pid_t> start_daemon_apart(ServiceManager& manager, const std::string& domain,
                                 const mps::DaemonStart& start);

/// Moves it out of the cgroup at least, where a unit cannot be had.
void move_daemon_out(ServiceManager& manager, const std::string& domain, pid_t daemon);

}  // namespace firebreak::agent
