// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <CLI/CLI.hpp>
#include <string>

namespace firebreak::cli {

/// The option that every command has which talks to the agent.
inline void add_socket_option(CLI::App& command, std::string& path) {
  path = "/run/firebreak/agent.sock";
  command.add_option("--socket", path, "Where the agent listens")
      ->envname("FIREBREAK_SOCKET")
      ->capture_default_str();
}

}  // namespace firebreak::cli
