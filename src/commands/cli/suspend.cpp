// SPDX-License-Identifier: Apache-2.0
/// `firebreak suspend` and `firebreak resume`.
#include <fmt/format.h>
#include <CLI/CLI.hpp>

#include "commands/cli/agent_socket.h"
#include "commands/cli/commands.h"
#include "shared/link/agent_link.h"

namespace firebreak::cli {
namespace {

struct Options {
  std::string socket_path;
  std::string name;
  bool keeps_memory = false;
  bool is_still = false;
  std::uint32_t patience_ms = 600'000;

  abi::RestLevel level() const {
    if (is_still) return abi::RestLevel::Still;
    return keeps_memory ? abi::RestLevel::WithoutContexts : abi::RestLevel::WithoutMemory;
  }
};

Status ask(const Options& options, abi::RestLevel level) {
  auto link = link::AgentLink::connect(options.socket_path);
  if (!link) return propagate(link);
  const auto began = std::chrono::steady_clock::now();
  const auto answer = (*link)->ask(abi::Rest{options.name, level}, -1, Milliseconds(options.patience_ms));
  if (!answer && answer.error().code == ErrorCode::Timeout)
    return fail(ErrorCode::Timeout, fmt::format("tenant '{}' has not answered", options.name),
                "`firebreak status` says how it stands");
  if (!answer) return propagate(answer);
  const std::chrono::duration<double, std::milli> took = std::chrono::steady_clock::now() - began;
  fmt::print("{} {} after {:.1f} ms\n", options.name,
             level == abi::RestLevel::Awake ? "is awake" : fmt::format("rests, {}", abi::to_string(level)),
             took.count());
  return {};
}

CLI::App* add(CLI::App& app, const char* name, const char* what, Options& options) {
  CLI::App* command = app.add_subcommand(name, what);
  command->add_option("NAME", options.name, "The tenant's name")->type_name(tenant_type)->required();
  command->add_option("--patience-ms", options.patience_ms, "For the answer")
      ->check(CLI::Range(1, 86'400'000))
      ->capture_default_str();
  add_socket_option(*command, options.socket_path);
  return command;
}

}  // namespace

void add_suspend(CLI::App& app, Action& action) {
  auto options = std::make_shared<Options>();
  CLI::App* command = add(app, "suspend", "Has a tenant give its GPU up, until `firebreak resume`", *options);
  command->footer(
      "Its calls wait meanwhile. The content of its memory goes to the host's. Exit status 0: it rests; else "
      "it "
      "goes on, and the reason is printed.");
  auto* keep = command->add_flag("--keep-memory", options->keeps_memory, "Leave its memory on the GPU");
  command->add_flag("--still", options->is_still, "Only wait for its work, and let no more through")
      ->excludes(keep);
  command->callback([options, &action] {
    action = [options] {
      const Status done = ask(*options, options->level());
      return done ? 0 : complain(to_string(done.error()));
    };
  });
}

void add_resume(CLI::App& app, Action& action) {
  auto options = std::make_shared<Options>();
  CLI::App* command = add(app, "resume", "Gives a tenant that rests its GPU again", *options);
  command->footer("Exit status 0: it works again; else it rests on, and the reason is printed.");
  command->callback([options, &action] {
    action = [options] {
      const Status done = ask(*options, abi::RestLevel::Awake);
      return done ? 0 : complain(to_string(done.error()));
    };
  });
}

}  // namespace firebreak::cli
