// SPDX-License-Identifier: Apache-2.0
/// The command line of firebreak-nri.
#pragma once

#include <CLI/CLI.hpp>
#include <cstdint>
#include <string>

#include "ground/platform/machine.h"

namespace firebreak::nri {

struct NriOptions {
  std::string socket_path = "/run/firebreak/status.sock";
  std::string nri_socket = "/var/run/nri/nri.sock";
  std::string shared_memory = "/dev/shm";
  std::string guard_library;
  std::uint32_t agent_patience_s = 30;
  bool without_guard = false;
};

inline void describe_command_line(CLI::App& app, NriOptions& options) {
  app.description(
      "Gives containers seats in the Firebreak agent's MPS domains by their pods' annotations, "
      "firebreak.dev/seat and firebreak.dev/pair: a plugin of containerd or CRI-O (Node Resource "
      "Interface).");
  app.set_version_flag("--version", "firebreak-nri " + platform::version());
  app.add_option("--socket", options.socket_path, "Where the agent tells its status to observers")
      ->capture_default_str();
  app.add_option("--nri-socket", options.nri_socket, "Where the runtime takes plugins")
      ->capture_default_str();
  app.add_option("--agent-patience-s", options.agent_patience_s,
                 "So long an agent may be away, as in an upgrade, before nobody gets a seat")
      ->capture_default_str()
      ->check(CLI::Range(0U, 86'400U));
  app.add_option("--guard-library", options.guard_library,
                 "Where the guard is on the host; by default it is looked for beside this program");
  app.add_flag("--no-guard", options.without_guard, "Containers do not load the guard");
  app.add_option("--shm", options.shared_memory,
                 "The host's folder that is /dev/shm in containers, which MPS needs; empty: their own")
      ->capture_default_str();
}

}  // namespace firebreak::nri
