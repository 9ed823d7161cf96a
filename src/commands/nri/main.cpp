// SPDX-License-Identifier: Apache-2.0
/// firebreak-nri: seats in the agent's domains, for a container runtime's pods.
#include <fmt/format.h>
#include <signal.h>
#include <CLI/CLI.hpp>

#include "commands/nri/command_line.h"
#include "commands/nri/offer_watch.h"
#include "commands/nri/runtime_link.h"
#include "commands/nri/seating.h"
#include "commands/seats/seats.h"
#include "ground/base/log.h"
#include "ground/os/event_loop.h"
#include "ground/pages/arguments.h"
#include "ground/pages/pages.h"
#include "shared/link/agent_question.h"

namespace firebreak::nri {
namespace {

constexpr Milliseconds between_looks{500};

void tell(const std::string& line) { fmt::print(stderr, "firebreak-nri: {}\n", line); }

/// One seat for each domain: here nobody counts by them.
Result<k8s::OfferRules> rules_of(const NriOptions& options) {
  k8s::OfferRules rules;
  rules.agent_socket = options.socket_path;
  rules.check_directory = seats::check_directory;
  rules.agent_patience = std::chrono::seconds(options.agent_patience_s);
  rules.shared_memory = options.shared_memory;
  auto library = seats::choose_guard_library(options.guard_library, options.without_guard);
  if (!library) return propagate(library);
  rules.guard_library = std::move(*library);
  return rules;
}

Status serve(const NriOptions& options) {
  const auto rules = rules_of(options);
  if (!rules) return propagate(rules);
  if (auto held = os::hold_signals({SIGINT, SIGTERM}); !held) return held;
  const auto loop = os::EventLoop::create();
  if (!loop) return propagate(loop);
  const auto signals = (*loop)->on_signals({SIGINT, SIGTERM}, [raw = loop->get()](int) { raw->stop(); });
  if (!signals) return propagate(signals);
  const SystemClock clock;
  link::AgentQuestion agent(options.socket_path);
  OfferWatch offers(*rules, {clock, [&agent] { return agent.ask(); }, tell});
  if (const Status asks = offers.start(); !asks) return propagate(asks);
  const auto seating = [&offers](const Newcomer& newcomer) {
    return seat_for(*offers.offer(), newcomer, offers.actives());
  };
  RuntimeLink runtime(options.nri_socket, {**loop, clock, seating, tell});
  runtime.look();
  const auto looks = (*loop)->every(between_looks, [&runtime] { runtime.look(); });
  if (!looks) return propagate(looks);
  (*loop)->run();
  return {};
}

}  // namespace
}  // namespace firebreak::nri

int main(int argument_count, char** arguments) {
  using namespace firebreak;
  CLI::App app;
  nri::NriOptions options;
  nri::describe_command_line(app, options);
  const pages::Subject subject{
      "firebreak-nri",
      8,
      platform::version(),
      {{"Gives seats beside an agent in another place", "firebreak-nri --socket /run/other/status.sock"}}};
  if (pages::print_if_asked(app, subject, argument_count, arguments)) return 0;
  if (const auto status = pages::read_arguments(app, subject.name, argument_count, arguments)) return *status;
  set_up_logging("firebreak-nri");
  const Status served = nri::serve(options);
  if (served) return 0;
  nri::tell(to_string(served.error()));
  return 1;
}
