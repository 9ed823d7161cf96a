// SPDX-License-Identifier: Apache-2.0
#include <fmt/format.h>
#include <CLI/CLI.hpp>

#include <future>
#include <mutex>

#include "commands/cli/agent_socket.h"
#include "commands/cli/commands.h"
#include "shared/link/agent_link.h"

namespace firebreak::cli {
namespace {

struct Options {
  std::string socket_path;
  std::string name;
  std::uint32_t patience_ms = 10'000;
};

/// The first event of that kind which the agent tells of the tenant.
class Awaited {
 public:
  Awaited(std::string tenant, abi::EventKind what) : tenant_(std::move(tenant)), what_(what) {}

  /// On the link's thread.
  void hear(const abi::Event& event) {
    if (event.tenant == tenant_ && event.what == what_)
      std::call_once(heard_, [&] { event_.set_value(event); });
  }
  std::optional<abi::Event> wait(Milliseconds patience) {
    auto event = event_.get_future();
    if (event.wait_for(patience) != std::future_status::ready) return std::nullopt;
    return event.get();
  }

 private:
  std::string tenant_;
  abi::EventKind what_;
  std::once_flag heard_;
  std::promise<abi::Event> event_;
};

Status hand_over(const Options& options) {
  Awaited resumed(options.name, abi::EventKind::Resumed);
  const auto link = link::AgentLink::connect(options.socket_path);
  if (!link) return propagate(link);
  const Status subscribed = (*link)->subscribe([&resumed](const abi::Event& event) { resumed.hear(event); });
  if (!subscribed) return subscribed;
  const std::int64_t asked_at_ns = to_ns(SystemClock().now());
  if (const auto asked = (*link)->ask(abi::HandOver{options.name}); !asked) return propagate(asked);
  const auto event = resumed.wait(Milliseconds(options.patience_ms));
  if (!event) {
    return fail(
        ErrorCode::Timeout, fmt::format("tenant '{}' has not handed over", options.name),
        "its active does so at its next commit, and only where it was built against libfirebreak 0.6");
  }
  fmt::print("{} goes on in process {} at step {}, {:.1f} ms after it was asked\n", options.name, event->pid,
             event->step, static_cast<double>(event->at_ns - asked_at_ns) / 1e6);
  return {};
}

}  // namespace

void add_hand_over(CLI::App& app, Action& action) {
  auto options = std::make_shared<Options>();
  CLI::App* command = app.add_subcommand(
      "hand-over", "Has a tenant's standby go on in its active's place, which becomes the standby");
  command->footer(
      "Between two steps: no commit is lost. Exit status 0: the standby's first kernel has completed.");
  command->add_option("NAME", options->name, "The tenant's name")->type_name(tenant_type)->required();
  command->add_option("--patience-ms", options->patience_ms, "With the active's next commit")
      ->check(CLI::Range(1, 3'600'000))
      ->capture_default_str();
  add_socket_option(*command, options->socket_path);
  command->callback([options, &action] {
    action = [options] {
      const Status done = hand_over(*options);
      return done ? 0 : complain(to_string(done.error()));
    };
  });
}

}  // namespace firebreak::cli
