// SPDX-License-Identifier: Apache-2.0
#include <fmt/format.h>
#include <CLI/CLI.hpp>

#include "commands/cli/agent_socket.h"
#include "commands/cli/commands.h"
#include "shared/link/agent_link.h"

namespace firebreak::cli {
namespace {

struct Options {
  std::string socket_path;
  std::string gpu;
};

Status tell(const Options& options) {
  auto link = link::AgentLink::connect(options.socket_path);
  if (!link) return propagate(link);
  const auto answer = (*link)->ask(abi::GpuRecovered{options.gpu});
  return answer ? Status() : propagate(answer);
}

}  // namespace

void add_recovered(CLI::App& app, Action& action) {
  auto options = std::make_shared<Options>();
  CLI::App* command =
      app.add_subcommand("recovered", "Says that a GPU is well again: tenants are placed there from now on");
  command->footer(
      "For one that needed a reset by the driver's own words (`firebreak status`), and was reset. Newer "
      "drivers "
      "say so themselves (Xid 154). Exit status 0: the agent takes it for well.");
  command
      ->add_option("gpu", options->gpu, "Its UUID or how that begins, its PCI address, or its number by NVML")
      ->required();
  add_socket_option(*command, options->socket_path);
  command->callback([options, &action] {
    action = [options] {
      const Status told = tell(*options);
      return told ? 0 : complain(to_string(told.error()));
    };
  });
}

}  // namespace firebreak::cli
