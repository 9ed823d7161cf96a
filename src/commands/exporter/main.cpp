// SPDX-License-Identifier: Apache-2.0
/// firebreak-exporter: what the agent counts, for Prometheus.
#include <fmt/format.h>
#include <signal.h>
#include <CLI/CLI.hpp>

#include <cstdio>

#include "commands/exporter/command_line.h"
#include "commands/exporter/exporter.h"
#include "commands/exporter/http_server.h"
#include "ground/base/log.h"
#include "ground/os/event_loop.h"
#include "ground/pages/arguments.h"
#include "ground/pages/pages.h"
#include "ground/platform/machine.h"
#include "shared/link/agent_link.h"

namespace firebreak::exporter {
namespace {

Result<std::string> ask(const std::string& socket_path) {
  auto link = link::AgentLink::connect(socket_path);
  if (!link) return propagate(link);
  return (*link)->status();
}

void tell(const std::string& line) { fmt::print(stderr, "firebreak-exporter: {}\n", line); }

/// Threads of the server answer; we wait for the end.
Status serve(const Options& options) {
  if (auto held = os::hold_signals({SIGINT, SIGTERM}); !held) return held;
  const auto loop = os::EventLoop::create();
  if (!loop) return propagate(loop);
  const auto signals = (*loop)->on_signals({SIGINT, SIGTERM}, [raw = loop->get()](int) { raw->stop(); });
  if (!signals) return propagate(signals);
  const Exporter exporter(platform::version(), {[&options] { return ask(options.socket_path); }, tell});
  const auto server = HttpServer::start(options.listen, "/metrics", [&exporter] { return exporter.text(); });
  if (!server) return propagate(server);
  fmt::print("firebreak-exporter: http://{}:{}/metrics\n",
             options.listen.substr(0, options.listen.rfind(':')), (*server)->port());
  std::fflush(stdout);
  (*loop)->run();
  return {};
}

}  // namespace
}  // namespace firebreak::exporter

int main(int argument_count, char** arguments) {
  using namespace firebreak;
  CLI::App app;
  exporter::Options options;
  exporter::describe_command_line(app, options);
  const pages::Subject subject{
      "firebreak-exporter",
      8,
      platform::version(),
      {{"Serves what an agent counts to other machines, too", "firebreak-exporter --listen 0.0.0.0:9757"}}};
  if (pages::print_if_asked(app, subject, argument_count, arguments)) return 0;
  if (const auto status = pages::read_arguments(app, subject.name, argument_count, arguments)) return *status;
  set_up_logging("firebreak-exporter");
  const Status served = exporter::serve(options);
  if (served) return 0;
  exporter::tell(to_string(served.error()));
  return 1;
}
