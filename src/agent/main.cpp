// SPDX-License-Identifier: Apache-2.0
/// firebreakd: the agent as a program.
#include <fmt/format.h>
#include <signal.h>
#include <spdlog/spdlog.h>
#include <CLI/CLI.hpp>

#include <cstdio>

#include "agent/agent.h"
#include "agent/gpu_detectors.h"
#include "agent/mps_domains.h"
#include "base/log.h"
#include "guard/trial.h"
#include "os/self.h"
#include "os/temporary_directory.h"
#include "platform/platform.h"

namespace firebreak::agent {
namespace {

struct Options {
  std::string directory = "/run/firebreak";
  std::string socket_path;
  std::string strays = "end";
  bool sparse = false;
  std::uint64_t stray_blocks = AgentOptions{}.stray_blocks_max;
  double hold_s = 5;
  double longest_hold_s = 30;
};

/// Before there are domains that a guard is of use to.
std::string test_guard(const platform::Platform& platform) {
  return describe(guard::known_or_tried_verdict(*platform.kernel, platform::guard_trial(platform)));
}

Milliseconds milliseconds(double seconds) {
  return std::chrono::duration_cast<Milliseconds>(std::chrono::duration<double>(seconds));
}

Status serve(const Options& options) {
  if (auto made = os::make_directories(options.directory); !made) return propagate(made, options.directory);
  auto platform = platform::choose(options.directory + "/softgpu");
  if (!platform) return propagate(platform);
  platform::hear_promptly(*platform);
  auto loop = os::EventLoop::create();
  if (!loop) return propagate(loop);
  auto signals = (*loop)->on_signals({SIGTERM, SIGINT, SIGHUP}, [raw = loop->get()](int) { raw->stop(); });
  if (!signals) return propagate(signals);

  const SystemClock clock;
  MpsDomains domains(**loop, *platform->kernel,
                     {options.directory, platform->control_program, platform->environment});
  GpuDetectors detectors(**loop, *platform->kernel, clock, domains, platform->nvml_library, options.sparse);
  AgentOptions agent_options;
  agent_options.socket_path = options.socket_path;
  agent_options.guard_test = test_guard(*platform);
  agent_options.tenant_environment = platform->environment;
  agent_options.strays = abi::stray_policy_from(options.strays).value_or(agent_options.strays);
  agent_options.stray_blocks_max = options.stray_blocks;
  agent_options.hold = milliseconds(options.hold_s);
  agent_options.longest_hold = milliseconds(options.longest_hold_s);
  auto agent = Agent::start(agent_options, **loop, *platform->kernel, clock, domains, detectors);
  if (!agent) return propagate(agent);
  fmt::print("firebreakd: {} GPU, listening at {}\n", platform::to_string(platform->gpu),
             options.socket_path);
  std::fflush(stdout);
  (*loop)->run();
  return {};
}

}  // namespace
}  // namespace firebreak::agent

int main(int argument_count, char** arguments) {
  using namespace firebreak;
  agent::Options options;
  CLI::App app{"The Firebreak agent: keeps the other tenants of a shared GPU alive when one faults."};
  app.add_option("--directory", options.directory,
                 "For MPS directories and the default socket; short, private to us")
      ->capture_default_str();
  app.add_option("--socket", options.socket_path,
                 "Where tenants reach the agent (default: DIRECTORY/agent.sock)");
  app.add_option("--strays", options.strays,
                 "What becomes of a guarded tenant that strays, where its operator says nothing else: end or "
                 "report")
      ->check(CLI::IsMember({"end", "report"}))
      ->capture_default_str();
  app.add_option("--stray-blocks", options.stray_blocks,
                 "A tenant that is only to be reported is ended beyond this many stray blocks of 2 MiB")
      ->capture_default_str();
  app.add_option("--hold-s", options.hold_s,
                 "How long a dead client's last kernels have to end, while others share its domain")
      ->check(CLI::NonNegativeNumber)
      ->capture_default_str();
  app.add_option("--longest-hold-s", options.longest_hold_s,
                 "The same where work is known to run on; then its domain is given up")
      ->check(CLI::NonNegativeNumber)
      ->capture_default_str();
  app.add_flag(
      "--sparse", options.sparse,
      "Let low addresses of tenants without a guard swallow strays (below 4 GiB): contained, and told "
      "to nobody");
  CLI11_PARSE(app, argument_count, arguments);
  if (options.socket_path.empty()) options.socket_path = options.directory + "/agent.sock";

  set_up_logging("firebreakd", "warn");
  const Status served = agent::serve(options);
  if (served) return 0;
  fmt::print(stderr, "firebreakd: {}\n", to_string(served.error()));
  return 1;
}
