// SPDX-License-Identifier: Apache-2.0
/// The command line of firebreak-exporter.
#pragma once

#include <CLI/CLI.hpp>
#include <string>

#include "ground/platform/machine.h"

namespace firebreak::exporter {

struct Options {
  std::string socket_path = "/run/firebreak/status.sock";
  std::string listen = "127.0.0.1:9757";
};

inline void describe_command_line(CLI::App& app, Options& options) {
  app.description("Serves what the Firebreak agent counts to Prometheus, at http://ADDRESS:PORT/metrics.");
  app.set_version_flag("--version", "firebreak-exporter " + platform::version());
  app.add_option("--socket", options.socket_path, "Where the agent tells its status to observers")
      ->capture_default_str();
  app.add_option("--listen", options.listen,
                 "ADDRESS:PORT; whoever reaches it reads the names of all tenants")
      ->capture_default_str();
}

}  // namespace firebreak::exporter
