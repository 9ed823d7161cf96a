// SPDX-License-Identifier: Apache-2.0
#include <fmt/format.h>
#include <CLI/CLI.hpp>

#include <future>

#include "commands/cli/agent_socket.h"
#include "commands/cli/commands.h"
#include "shared/link/agent_link.h"

namespace firebreak::cli {
namespace {

struct Options {
  std::string socket_path;
  bool force = false;
  std::uint32_t grace_ms = 2000;
};

/// What tenants may take beyond the grace, and after them shelves and MPS daemons that do not answer.
constexpr Milliseconds beyond_grace{60'000};

/// Returns when the agent itself is gone, too.
Result<std::string> shut_down(const Options& options) {
  std::promise<void> gone;
  auto link = link::AgentLink::connect(options.socket_path);
  if (!link) return propagate(link);
  const auto answer = (*link)->ask(abi::Shutdown{options.force, options.grace_ms}, -1,
                                   Milliseconds(options.grace_ms) + beyond_grace);
  if (!answer && answer.error().code == ErrorCode::Timeout)
    return fail(ErrorCode::Timeout, "the agent has not ended", "its log says what it waits for");
  if (!answer) return propagate(answer);
  const auto* ended = std::get_if<abi::Ended>(&answer->message);
  if (ended == nullptr) return fail(ErrorCode::Protocol, "the agent did not say how tenants ended");
  (*link)->on_lost([&gone] { gone.set_value(); });
  const bool is_gone = gone.get_future().wait_for(beyond_grace) == std::future_status::ready;
  if (!is_gone) return fail(ErrorCode::Timeout, "all has ended but the agent itself");
  return ended->text;
}

}  // namespace

void add_shutdown(CLI::App& app, Action& action) {
  auto options = std::make_shared<Options>();
  CLI::App* command = app.add_subcommand(
      "shutdown", "Ends the agent for good, its MPS daemons, and all that is kept of tenants");
  command->footer(
      "Where tenants are there it names them and ends nothing, unless --force is given. Exit status 0: "
      "nothing is left, and nobody starts the agent again. To restart it end it with SIGTERM, or by "
      "systemctl restart: then tenants go on.");
  command->add_flag("--force", options->force, "End the tenants that are there, in good order");
  command
      ->add_option("--grace-ms", options->grace_ms,
                   "Between SIGTERM and SIGKILL, for each of their processes")
      ->check(CLI::Range(0, 60'000))
      ->capture_default_str();
  add_socket_option(*command, options->socket_path);
  command->callback([options, &action] {
    action = [options] {
      const auto ended = shut_down(*options);
      if (!ended) return complain(to_string(ended.error()));
      fmt::print("the agent has ended for good: {}\n", *ended);
      return 0;
    };
  });
}

}  // namespace firebreak::cli
