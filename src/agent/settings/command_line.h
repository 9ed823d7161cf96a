// SPDX-License-Identifier: Apache-2.0
/// The options of firebreakd, from its command line and from the file that it names there.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "agent/domains/mps/client_limits.h"
#include "agent/settings/options.h"
#include "ground/os/logs.h"

namespace firebreak::agent {

struct CommandLine {
  std::string directory = "/run/firebreak";
  std::string socket_path;
  std::string user;
  std::string operator_group;
  std::string tenant_group;
  std::string observer_group;
  std::string strays = "end";
  bool sparse = false;
  std::uint64_t stray_blocks = AgentOptions{}.stray_blocks_max;
  double hold_s = 5;
  double longest_hold_s = 30;
  double lease_s = 30;
  std::uint64_t quota_mib = 0;
  double fence_wait_s = 0.05;
  double park_s = 0;
  bool spares = false;
  std::string turns = "free";
  double turn_max_ms = 2'000;
  std::string gpu_kind;
  std::vector<std::string> gpus;
  mps::ClientLimits limits;
  bool end_domains = false;
  bool supervised = false;
  bool second_supervisor = false;
  double watchdog_s = 1;
  std::string configuration;
  bool check = false;
  bool shelf = false;
  bool rights_keeper = false;
  bool privileged_helper = false;
  std::uint64_t log_mib = 16;
  std::size_t log_files = os::LogLimits{}.old_files;
  std::uint64_t descriptors = 0;
};

/// The program's exit status where there is no more to do: what there was to say (help, a mistake, that the
/// file is in order) has been said.
std::optional<int> read_command_line(int argument_count, char** arguments, CommandLine& into);

}  // namespace firebreak::agent
