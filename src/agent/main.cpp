// SPDX-License-Identifier: Apache-2.0
/// firebreakd: the agent as a program.
#include <fmt/format.h>
#include <signal.h>
#include <spdlog/spdlog.h>
#include <CLI/CLI.hpp>

#include <algorithm>
#include <cstdio>
#include <filesystem>
#include <string_view>

#include "agent/agent.h"
#include "agent/gpu_detectors.h"
#include "agent/gpu_wait.h"
#include "agent/kept_state.h"
#include "agent/mps_domains.h"
#include "agent/pulse.h"
#include "agent/shelf.h"
#include "agent/shelves.h"
#include "agent/supervisor.h"
#include "agent/waiting.h"
#include "base/log.h"
#include "base/units.h"
#include "guard/probe.h"
#include "os/broker.h"
#include "os/descriptors.h"
#include "os/file.h"
#include "os/leave_process.h"
#include "os/real_kernel.h"
#include "os/self.h"
#include "platform/machine.h"
#include "platform/platform.h"

namespace firebreak::agent {
namespace {

struct Options {
  std::string directory = "/run/firebreak";
  std::string socket_path;
  std::string operator_group;
  std::string tenant_group;
  std::string strays = "end";
  bool sparse = false;
  std::uint64_t stray_blocks = AgentOptions{}.stray_blocks_max;
  double hold_s = 5;
  double longest_hold_s = 30;
  double lease_s = 30;
  std::uint64_t quota_mib = 0;
  double fence_wait_s = 0.05;
  double park_s = 0;
  bool spares = false;
  std::string gpu_kind;
  std::vector<std::string> gpus;
  mps::ClientLimits limits;
  bool end_domains = false;
  bool supervised = false;
  double watchdog_s = 1;
  bool shelf = false;
  bool looks = false;
  std::uint64_t log_mib = 16;
  std::size_t log_files = os::LogLimits{}.old_files;
  std::uint64_t descriptors = 0;
};

/// Before there are domains that a guard is of use to.
std::string test_guard(const platform::Platform& platform) {
  return describe(guard::known_or_new_probe_result(*platform.kernel, platform::guard_probe(platform)));
}

Milliseconds milliseconds(double seconds) {
  return std::chrono::duration_cast<Milliseconds>(std::chrono::duration<double>(seconds));
}

/// Full UUIDs, each once.
Result<std::vector<std::string>> find_gpus(const platform::Platform& platform, const Options& options) {
  std::vector<std::string> uuids;
  for (const std::string& wanted : options.gpus) {
    auto uuid = platform::find_gpu(platform, wanted);
    if (!uuid) return propagate(uuid);
    if (std::ranges::count(uuids, *uuid) > 0) {
      return fail(ErrorCode::InvalidArgument, "the GPU " + *uuid + " is named twice");
    }
    uuids.push_back(std::move(*uuid));
  }
  return uuids;
}

/// How many we have; a machine that does not say so lets us go on.
std::uint64_t raise_descriptors(std::uint64_t most) {
  const auto limit = most == 0 ? os::raise_descriptor_limit() : os::raise_descriptor_limit(most);
  if (!limit) spdlog::warn("{}", to_string(limit.error()));
  if (limit) spdlog::info("{} descriptors at most", limit->soft);
  return limit ? limit->soft : 0;
}

/// The software GPU is for those who ask for it; nobody's tenants are to run on an interpreter because the
/// driver was not loaded yet. False: we are to end before there is one.
Result<bool> await_gpu(const Options& options, const Sockets& sockets, os::EventLoop& loop,
                       ServiceManager& manager) {
  const auto wanted = platform::wanted_gpu(options.gpu_kind);
  if (!wanted) return propagate(wanted);
  if (*wanted == platform::Gpu::Soft) return true;
  os::RealKernel kernel;
  return wait_for_gpu(loop, manager, sockets, [&kernel] { return platform::real_gpu_is_there(kernel); });
}

/// Tenants and whoever else decide how long a look at them lasts.
Result<std::shared_ptr<os::Broker>> start_broker(os::Kernel& kernel) {
  auto program = os::executable_path();
  if (!program) return propagate(program);
  os::BrokerOptions options;
  options.command = {std::move(*program), "--looks"};
  options.tell = [](const std::string& line) { spdlog::warn("{}", line); };
  auto broker = std::make_shared<os::Broker>(std::move(options));
  if (const Status started = broker->start(); !started) return propagate(started);
  kernel.look_by(broker);
  return broker;
}

/// Empty: none.
Result<os::SocketGroup> group_of(const std::string& name) {
  if (name.empty()) return os::SocketGroup{};
  const auto group = os::group_named(name);
  if (!group) return propagate(group);
  return os::SocketGroup{*group};
}

/// Who may come there is said by the socket's group (docs/security.md).
Result<Sockets> sockets_of(const Options& options) {
  const auto operators = group_of(options.operator_group);
  if (!operators) return propagate(operators);
  const auto tenants = group_of(options.tenant_group);
  if (!tenants) return propagate(tenants);
  return Sockets{options.socket_path, *operators, options.directory + "/tenants.sock", *tenants};
}

/// What a signal asks of us.
enum class Told { Nothing, HandOver, End };

/// SIGTERM is what service managers send, and a restart or an upgrade begins with it just as a stop does;
/// SIGHUP comes when a terminal is gone. Neither is a wish of somebody's that tenants end. SIGINT is: it
/// comes from a keyboard, and who ends a program there wants nothing of it left.
Told meaning_of(int signal, const Options& options) {
  return signal == SIGINT || options.end_domains ? Told::End : Told::HandOver;
}

/// With its servers: what is done to all of this service, as a kill, does not concern them.
void move_out(ServiceManager& manager, const std::string& domain, pid_t daemon) {
  const Status moved = manager.give_own_unit(fmt::format("firebreak-mps-{}-{}", domain, daemon),
                                             "Firebreak: MPS domain " + domain, daemon);
  if (!moved && moved.error().code != ErrorCode::Unsupported)
    spdlog::warn("MPS domain {} stays in this service's cgroup: {}", domain, to_string(moved.error()));
}

/// The next agent begins with what one that was killed would have left.
[[noreturn]] void leave_to_the_next(Agent* agent) {
  if (agent != nullptr) agent->hand_over();
  os::leave_process_at_once(handed_over_status);
}

Result<AgentOptions> options_of_agent(const Options& options, const Sockets& sockets,
                                      const platform::Platform& platform, std::uint64_t descriptors_max) {
  AgentOptions made;
  made.socket_path = sockets.operators;
  made.operator_group = sockets.operator_group;
  made.tenants_socket_path = sockets.tenants;
  made.tenant_group = sockets.tenant_group;
  made.guard_test = test_guard(platform);
  made.tenant_environment = platform.environment;
  made.strays = abi::stray_policy_from(options.strays).value_or(made.strays);
  made.stray_blocks_max = options.stray_blocks;
  made.hold = milliseconds(options.hold_s);
  made.longest_hold = milliseconds(options.longest_hold_s);
  made.fence_wait = milliseconds(options.fence_wait_s);
  made.limits = options.limits;
  made.lease = milliseconds(options.lease_s);
  made.descriptors_max = descriptors_max;
  made.quota_bytes = options.quota_mib * mib;
  auto program = os::executable_path();
  if (!program) return propagate(program);
  made.park = milliseconds(options.park_s);
  made.dump_directory = options.directory + "/core-dumps";
  made.parking_client = std::filesystem::path(*program).replace_filename("firebreak-parking-client");
  made.shelf_command = {std::move(*program), "--shelf"};
  return made;
}

Result<int> serve(const Options& options) {
  const std::uint64_t descriptors_max = raise_descriptors(options.descriptors);
  if (auto made = os::make_directories(options.directory); !made) return propagate(made, options.directory);
  const auto lock = os::FileLock::take(options.directory + "/agent.lock");
  if (!lock) return propagate(lock, "another agent uses this directory");
  const auto sockets = sockets_of(options);
  if (!sockets) return propagate(sockets);
  // Each socket and each domain in it says by itself who may use it.
  if (sockets->operator_group || sockets->tenant_group) {
    if (auto through = os::let_through(options.directory); !through) return propagate(through);
  }
  auto loop = os::EventLoop::create();
  if (!loop) return propagate(loop);
  Told told = Told::Nothing;
  Agent* serving = nullptr;
  auto signals = (*loop)->on_signals({SIGTERM, SIGINT, SIGHUP}, [&, raw = loop->get()](int signal) {
    told = std::max(told, meaning_of(signal, options));
    const bool is_the_end = told == Told::End || (serving != nullptr && serving->is_shutting_down());
    if (is_the_end && serving != nullptr) return serving->shut_down();
    raw->stop();
  });
  if (!signals) return propagate(signals);
  const auto manager = find_service_manager();
  const SystemClock clock;
  const auto pulse = Pulse::begin(**loop, clock, *manager);
  if (!pulse) return propagate(pulse);
  const auto is_there = await_gpu(options, *sockets, **loop, *manager);
  if (!is_there) return propagate(is_there);
  if (!*is_there && told == Told::HandOver) leave_to_the_next(nullptr);
  if (!*is_there) return 0;
  if (const Status known = check_versions(manager->descriptors()); !known) {
    const Status waited = wait_to_be_replaced(**loop, *manager, *sockets, known.error());
    if (waited && told == Told::HandOver) leave_to_the_next(nullptr);
    return waited ? Result<int>(0) : propagate(waited);
  }
  auto platform = platform::choose(options.directory + "/softgpu", options.gpu_kind);
  if (!platform) return propagate(platform);
  const auto broker = start_broker(*platform->kernel);
  if (!broker) return propagate(broker);
  platform::hear_promptly(*platform);

  auto gpus = find_gpus(*platform, options);
  if (!gpus) return propagate(gpus);

  MpsDomains domains(
      **loop, *platform->kernel,
      {options.directory,
       platform->control_program,
       platform->environment,
       std::move(*gpus),
       !options.end_domains,
       {options.log_mib * mib, options.log_files},
       options.spares,
       sockets->tenant_group,
       [raw = manager.get()](const std::string& domain, pid_t daemon) { move_out(*raw, domain, daemon); }});
  GpuDetectors detectors(**loop, *platform->kernel, clock, domains, platform->nvml_library, options.sparse);
  auto agent_options = options_of_agent(options, *sockets, *platform, descriptors_max);
  if (!agent_options) return propagate(agent_options);
  agent_options->not_answered = [broker = *broker] { return broker->not_answered(); };
  auto agent = Agent::start(*agent_options, **loop, *platform->kernel, clock, domains, detectors, *manager);
  if (!agent) return propagate(agent);
  serving = agent->get();
  manager->tell_status(fmt::format("{} GPU", platform::to_string(platform->gpu)));
  fmt::print("firebreakd: {} GPU, listening at {}\n", platform::to_string(platform->gpu),
             options.socket_path);
  std::fflush(stdout);
  (*loop)->run();
  if (told == Told::HandOver && !serving->is_shutting_down()) leave_to_the_next(serving);
  return 0;
}

/// The same command again, under our eyes.
Result<int> supervise(const Options& options, int argument_count, char** arguments) {
  raise_descriptors(0);  // each that the agent has may be ours to keep
  if (auto made = os::make_directories(options.directory); !made) return propagate(made, options.directory);
  auto program = os::executable_path();
  if (!program) return propagate(program);
  std::vector<std::string> command = {*program};
  for (int i = 1; i < argument_count; ++i) {
    if (std::string_view(arguments[i]) != "--supervised") command.emplace_back(arguments[i]);
  }
  os::RealKernel kernel;
  const std::string notify_path = std::filesystem::absolute(options.directory + "/notify.sock").string();
  auto supervisor =
      Supervisor::create(kernel, std::move(command), notify_path, milliseconds(options.watchdog_s));
  if (!supervisor) return propagate(supervisor);
  return (*supervisor)->run();
}

/// What becomes of tenants.
void add_tenant_options(CLI::App& app, Options& options) {
  app.set_version_flag("--version", "firebreakd " + platform::version());
  app.add_option("--directory", options.directory,
                 "For MPS directories and the default socket; short, private to us")
      ->capture_default_str();
  app.add_option("--socket", options.socket_path,
                 "Where operators reach the agent (default: DIRECTORY/agent.sock; tenants: "
                 "DIRECTORY/tenants.sock)");
  app.add_option("--operator-group", options.operator_group,
                 "Whose members are operators, besides root and our user: they may do everything");
  app.add_option("--tenant-group", options.tenant_group,
                 "Whose members may run tenants, besides root and our user, and see and end their own");
  app.add_option("--strays", options.strays,
                 "What becomes of a guarded tenant that strays, where its operator says nothing else: end or "
                 "report")
      ->check(CLI::IsMember({"end", "report"}))
      ->capture_default_str();
  app.add_option("--stray-blocks", options.stray_blocks,
                 "A tenant that is only to be reported is ended beyond this many stray blocks of 2 MiB")
      ->capture_default_str();
  app.add_option("--hold-s", options.hold_s,
                 "How long a dead client's last kernels have to end, while others share its domain; 0: none "
                 "are waited for")
      ->check(CLI::NonNegativeNumber)
      ->capture_default_str();
  app.add_option("--longest-hold-s", options.longest_hold_s,
                 "The same where work is known to run on; then its domain is given up")
      ->check(CLI::NonNegativeNumber)
      ->capture_default_str();
  app.add_option("--fence-wait-s", options.fence_wait_s,
                 "The same for a dead active whose standby waits to take over, where work is known to run")
      ->check(CLI::NonNegativeNumber)
      ->capture_default_str();
  app.add_option("--lease-s", options.lease_s,
                 "How long a tenant's GPU memory outlives its last process, unless it had finished; a "
                 "process that is "
                 "started meanwhile goes on with it")
      ->check(CLI::NonNegativeNumber)
      ->capture_default_str();
  app.add_option("--park-s", options.park_s,
                 "How long the other tenants of a domain go on after an exception of one's kernel, so that "
                 "they can leave before the domain falls; costs a small context a domain (default: 0, not "
                 "at all)")
      ->check(CLI::Range(0.0, 86400.0));
  app.add_flag("--spares", options.spares,
               "Give spare driver instances to programs that `firebreak run --spare` starts; costs an MPS "
               "daemon more on each GPU");
  app.add_option("--quota-mib", options.quota_mib,
                 "Of GPU memory that outlives its processes, for each tenant (default: "
                 "no limit)")
      ->check(CLI::Range(std::uint64_t{0}, std::uint64_t{1} << 30));
}

/// What there is for them.
void add_machine_options(CLI::App& app, Options& options) {
  app.add_flag(
      "--sparse", options.sparse,
      "Let low addresses of tenants without a guard swallow strays (below 4 GiB): contained, and told "
      "to nobody");
  app.add_option(
      "--gpu", options.gpus,
      "A GPU with two MPS domains of its own, by its UUID or how that begins (nvidia-smi -L); may be "
      "given again (default: one, the one that CUDA finds)");
  app.add_option("--gpu-kind", options.gpu_kind,
                 "real, for which the agent waits where its driver is not loaded, or soft, to try Firebreak "
                 "without a GPU (default: FIREBREAK_GPU, else real)")
      ->check(CLI::IsMember({"real", "soft"}));
  app.add_option("--sm-percent", options.limits.sm_percent,
                 "Of the SMs, for each tenant of which `firebreak run` says nothing else")
      ->check(CLI::Range(1, 100));
  app.add_option("--memory-mib", options.limits.memory_mib,
                 "Of device memory, for each tenant of which `firebreak run` says nothing else")
      ->check(CLI::Range(1U, 1U << 30));
  // What it asked for is so by itself now; who has it in a unit file need not take it out.
  app.add_flag("--keep-domains")->group("");
  auto* supervised =
      app.add_flag("--supervised", options.supervised,
                   "Be started again after a failure and after a SIGTERM, with everything that is known of "
                   "the tenants and "
                   "their memory; for machines without systemd, whose descriptor store does the same");
  app.add_option(
         "--watchdog-s", options.watchdog_s,
         "With --supervised: an agent whose loop gives no sign of life for so long is killed and started "
         "again; 0: none is, as for a debugger (by systemd: WatchdogSec=)")
      ->check(CLI::Range(0.0, 86400.0))
      ->capture_default_str();
  app.add_flag(
         "--end-domains", options.end_domains,
         "Whatever ends the agent ends its MPS daemons, and with them the tenants; without it they go on, "
         "for the next agent on this directory, unless it ends by SIGINT or `firebreak shutdown`")
      ->excludes(supervised);
  app.add_flag("--shelf", options.shelf, "What agents start themselves, to hold descriptors for them")
      ->group("");
  app.add_flag("--looks", options.looks, "What the agent starts itself, to look at other processes for it")
      ->group("");
  app.add_option("--log-mib", options.log_mib, "Size of an MPS log above which its older part is moved away")
      ->check(CLI::Range(std::uint64_t{1}, std::uint64_t{1} << 20))
      ->capture_default_str();
  app.add_option(
         "--descriptors", options.descriptors,
         "How many the agent may have, for how many tenants it has room (default: as many as the hard "
         "limit allows, and root may raise)")
      ->check(CLI::Range(std::uint64_t{128}, std::uint64_t{1} << 20));
  app.add_option("--log-files", options.log_files, "How many such parts are kept of each log")
      ->capture_default_str();
}

}  // namespace
}  // namespace firebreak::agent

int main(int argument_count, char** arguments) {
  using namespace firebreak;
  agent::Options options;
  CLI::App app{"The Firebreak agent: keeps the other tenants of a shared GPU alive when one faults."};
  agent::add_tenant_options(app, options);
  agent::add_machine_options(app, options);
  CLI11_PARSE(app, argument_count, arguments);
  if (options.socket_path.empty()) options.socket_path = options.directory + "/agent.sock";

  set_up_logging("firebreakd", "warn");
  if (options.shelf) {
    os::Socket socket{os::Fd(agent::Shelves::socket_descriptor)};
    agent::serve_shelf(socket);
    (void)socket.release().release();
    return 0;
  }
  if (options.looks) {
    os::Socket socket{os::Fd(os::Broker::socket_descriptor)};
    os::serve_looks(socket);
    return 0;
  }
  if (options.supervised) {
    const auto status = agent::supervise(options, argument_count, arguments);
    if (status) return *status;
    fmt::print(stderr, "firebreakd: {}\n", to_string(status.error()));
    return 1;
  }
  const auto served = agent::serve(options);
  if (served) return *served;
  fmt::print(stderr, "firebreakd: {}\n", to_string(served.error()));
  return 1;
}
