// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <CLI/CLI.hpp>
#include <filesystem>
#include <string>

#include "ground/os/file.h"

namespace firebreak::cli {

/// The operators' socket, where it is ours to use; else the tenants' one (docs/use/security.md).
inline std::string default_socket() {
  const std::string operators = "/run/firebreak/agent.sock", tenants = "/run/firebreak/tenants.sock";
  return os::may_write(tenants) && !os::may_write(operators) ? tenants : operators;
}

/// The option that every command has which talks to the agent.
inline void add_socket_option(CLI::App& command, std::string& path) {
  path = default_socket();
  command.add_option("--socket", path, "Where the agent listens")
      ->envname("FIREBREAK_SOCKET")
      ->capture_default_str();
}

/// Where the agent behind that socket keeps the reports of exceptions.
inline std::string report_folder(const std::string& socket_path) {
  return std::filesystem::path(socket_path).replace_filename("core-dumps").string();
}

}  // namespace firebreak::cli
