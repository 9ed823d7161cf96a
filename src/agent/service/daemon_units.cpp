// SPDX-License-Identifier: Apache-2.0
#include "agent/service/daemon_units.h"

#include <fmt/format.h>
#include <spdlog/spdlog.h>

#include <atomic>

#include "ground/os/self.h"

namespace firebreak::agent {

Result<pid_t> start_daemon_apart(ServiceManager& manager, const std::string& domain,
                                 const mps::DaemonStart& start) {
  static std::atomic<int> started{0};
  ApartService service;
  service.name = fmt::format("firebreak-mps-{}-{}-{}", domain, os::own_pid(), ++started);
  service.description = "Firebreak: MPS domain " + domain;
  service.command = start.command;
  service.environment = start.environment;
  service.output_path = start.output_path;
  return manager.start_apart(service);
}

void move_daemon_out(ServiceManager& manager, const std::string& domain, pid_t daemon) {
  const Status moved = manager.give_own_unit(fmt::format("firebreak-mps-{}-{}", domain, daemon),
                                             "Firebreak: MPS domain " + domain, daemon);
  if (!moved && moved.error().code != ErrorCode::Unsupported)
    spdlog::warn("MPS domain {} stays in this service's cgroup: {}", domain, to_string(moved.error()));
}

}  // namespace firebreak::agent
