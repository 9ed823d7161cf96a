// SPDX-License-Identifier: Apache-2.0
/// firebreak-k8s: seats in the agent's domains, for the kubelet.
#include <fmt/format.h>
#include <grpc/support/log.h>
#include <signal.h>
#include <CLI/CLI.hpp>

#include "base/log.h"
#include "k8s/command_line.h"
#include "k8s/plugin.h"
#include "link/agent_link.h"
#include "os/event_loop.h"
#include "pages/pages.h"
#include "seats/seats.h"

namespace firebreak::k8s {
namespace {

constexpr Milliseconds between_looks{500};
constexpr Milliseconds answer_patience{2'000};

void tell(const std::string& line) { fmt::print(stderr, "firebreak-k8s: {}\n", line); }

/// By one connection, for as long as that lives.
class AgentQuestion {
 public:
  explicit AgentQuestion(std::string socket_path) : socket_path_(std::move(socket_path)) {}

  Result<std::string> ask() {
    if (!link_ || link_->lost()) {
      auto link = link::AgentLink::connect(socket_path_);
      if (!link) return propagate(link);
      link_ = std::move(*link);
    }
    auto status = link_->status(answer_patience);
    if (!status) link_.reset();
    return status;
  }

 private:
  std::string socket_path_;
  std::unique_ptr<link::AgentLink> link_;
};

Result<OfferRules> rules_of(const PluginOptions& options) {
  OfferRules rules;
  rules.seats_of_domain = options.seats;
  rules.agent_patience = std::chrono::seconds(options.agent_patience_s);
  rules.shared_memory = options.shared_memory;
  if (options.without_guard) return rules;
  auto library = seats::find_guard_library();
  if (!library) return propagate(library);
  rules.guard_library = std::move(*library);
  return rules;
}

Status serve(const PluginOptions& options) {
  const auto rules = rules_of(options);
  if (!rules) return propagate(rules);
  if (auto held = os::hold_signals({SIGINT, SIGTERM}); !held) return held;
  const auto loop = os::EventLoop::create();
  if (!loop) return propagate(loop);
  const auto signals = (*loop)->on_signals({SIGINT, SIGTERM}, [raw = loop->get()](int) { raw->stop(); });
  if (!signals) return propagate(signals);
  AgentQuestion agent(options.socket_path);
  const SystemClock clock;
  Plugin plugin(options.kubelet_folder, *rules, {clock, [&agent] { return agent.ask(); }, tell});
  plugin.look();
  const auto looks = (*loop)->every(between_looks, [&plugin] { plugin.look(); });
  if (!looks) return propagate(looks);
  (*loop)->run();
  return {};
}

}  // namespace
}  // namespace firebreak::k8s

int main(int argument_count, char** arguments) {
  using namespace firebreak;
  CLI::App app;
  k8s::PluginOptions options;
  k8s::describe_command_line(app, options);
  if (pages::print_if_asked(app, {"firebreak-k8s", 8, platform::version()}, argument_count, arguments))
    return 0;
  try {
    app.parse(argument_count, arguments);
  } catch (const CLI::Success& asked) {
    return app.exit(asked);
  } catch (const CLI::ParseError& error) {
    k8s::tell(std::string(error.what()) + " (man firebreak-k8s)");
    return 1;
  }
  set_up_logging("firebreak-k8s");
  gpr_set_log_function([](gpr_log_func_args*) {});  // what goes wrong is in our own lines
  const Status served = k8s::serve(options);
  if (served) return 0;
  k8s::tell(to_string(served.error()));
  return 1;
}
