// SPDX-License-Identifier: Apache-2.0
/// firebreakd: the agent as a program.
#include <fmt/format.h>
#include <signal.h>
#include <spdlog/spdlog.h>

#include <algorithm>
#include <chrono>
#include <cstdio>
#include <filesystem>
#include <iterator>
#include <optional>
#include <utility>
#include <vector>

#include "agent/domains/mps_domains.h"
#include "agent/faults/watch/nvml_library.h"
#include "agent/firebreakd/agent.h"
#include "agent/firebreakd/gpu_detectors.h"
#include "agent/loop/gpu_wait.h"
#include "agent/loop/journal.h"
#include "agent/loop/waiting.h"
#include "agent/root/own_user.h"
#include "agent/root/privileged_acts.h"
#include "agent/service/daemon_units.h"
#include "agent/service/pulse.h"
#include "agent/service/shelf.h"
#include "agent/service/shelves.h"
#include "agent/service/supervisor.h"
#include "agent/settings/command_line.h"
#include "agent/tenants/kept_state.h"
#include "ground/base/log.h"
#include "ground/base/units.h"
#include "ground/os/broker.h"
#include "ground/os/capabilities.h"
#include "ground/os/descriptors.h"
#include "ground/os/file.h"
#include "ground/os/leave_process.h"
#include "ground/os/looks.h"
#include "ground/os/memory.h"
#include "ground/os/processes.h"
#include "ground/os/real_kernel.h"
#include "ground/os/rights_keeper.h"
#include "ground/os/self.h"
#include "ground/platform/gpu_list.h"
#include "ground/platform/machine.h"
#include "ground/platform/platform.h"
#include "shared/abi/guard_page.h"
#include "shared/abi/spare_page.h"
#include "shared/guard_page/probe_program.h"

namespace firebreak::agent {
namespace {

/// Probes before there are domains that a guard is of use to. A probe may do what only root may.
guard::ProbeResult try_it(const platform::Platform& platform, PrivilegedHelper* helper, guard::Probed what) {
  if (helper != nullptr) return helper->probe(what);
  const char* const command = what == guard::Probed::GuardRanges ? "guard-probe" : "spare-probe";
  return guard::known_or_new_probe_result(*platform.kernel, what, platform::probe(platform, command));
}

/// Probes spares, but not where an agent before has left tenants: nobody raises a fault on their GPU, nor do
/// they wait for one.
guard::ProbeResult try_spares(const platform::Platform& platform, PrivilegedHelper* helper,
                              bool has_tenants) {
  if (!has_tenants) return try_it(platform, helper, guard::Probed::Spares);
  return helper != nullptr ? helper->known_probe(guard::Probed::Spares)
                           : guard::known_probe_result(*platform.kernel, guard::Probed::Spares);
}

Milliseconds milliseconds(double seconds) {
  return std::chrono::duration_cast<Milliseconds>(std::chrono::duration<double>(seconds));
}

/// Full UUIDs, each once.
Result<std::vector<std::string>> find_gpus(const platform::Platform& platform, const CommandLine& options) {
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

/// All that there are. By NVML, whose word counts; else, of a real one, by the driver's procfs.
std::vector<MachineGpu> machine_gpus(const platform::Platform& platform) {
  std::vector<MachineGpu> all;
  for (const watch::NvmlGpu& gpu : watch::gpus_listed_by_nvml(platform.nvml_library))
    all.push_back({gpu.uuid, gpu.pci});
  if (!all.empty() || platform.gpu == platform::Gpu::Soft) return all;
  for (const platform::ListedGpu& gpu : platform::listed_gpus(*platform.kernel))
    all.push_back({gpu.uuid, fault::pci_address(gpu.pci)});
  if (all.empty()) spdlog::warn("which GPUs there are is not known: an Xid's address says nothing");
  return all;
}

/// Sets which of several software GPUs: the stand-in for NVML, which is loaded into this process, finds it as
/// tenants do.
os::EnvironmentScope which_gpu(const platform::Platform& platform) {
  os::EnvironmentScope::Variables variables;
  for (const auto& variable : platform.environment) {
    if (variable.first == platform.state_variable) variables.push_back(variable);
  }
  return os::EnvironmentScope{variables};
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
Result<bool> await_gpu(const CommandLine& options, const Sockets& sockets, os::EventLoop& loop,
                       ServiceManager& manager) {
  const auto wanted = platform::wanted_gpu(options.gpu_kind);
  if (!wanted) return propagate(wanted);
  if (*wanted == platform::Gpu::Soft) return true;
  os::RealKernel kernel;
  return wait_for_gpu(loop, manager, sockets, [&kernel] { return platform::real_gpu_is_there(kernel); });
}

/// Starts the keeper, which keeps the right to look at other users' processes, and we give it up: what reads
/// the bytes of tenants is not what may change their processes. Called before there are other threads, which
/// would keep it.
Result<std::shared_ptr<os::RightsKeeper>> leave_rights_to_keeper() {
  constexpr Milliseconds start_limit(5'000);
  auto program = os::executable_path();
  if (!program) return propagate(program);
  auto keeper = os::RightsKeeper::start({std::move(*program), "--rights-keeper"}, start_limit);
  if (!keeper) return propagate(keeper);
  // A process that has more rights is not even seen without it where /proc is mounted with hidepid.
  const std::string seen = os::proc_folder((*keeper)->pid()) + "/status";
  const Status given_up = os::give_up_capability(os::Capability::SysPtrace,
                                                 [&seen] { return os::read_small_file(seen).has_value(); });
  if (!given_up) spdlog::warn("CAP_SYS_PTRACE is kept: {}", to_string(given_up.error()));
  return keeper;
}

/// Tenants and whoever else decide how long a look at them lasts.
Result<std::shared_ptr<os::Broker>> start_broker(os::EventLoop& loop, os::Kernel& kernel,
                                                 std::shared_ptr<os::RightsKeeper> keeper) {
  os::BrokerOptions options;
  options.keeper = std::move(keeper);
  options.tell = [](const std::string& line) { spdlog::warn("{}", line); };
  auto broker = std::make_shared<os::Broker>(std::move(options));
  broker->put_off_for([&loop] { return loop.urgent(); });
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

/// Who may come there is said by the socket's group (docs/use/security.md).
Result<Sockets> sockets_of(const CommandLine& options) {
  const auto operators = group_of(options.operator_group);
  if (!operators) return propagate(operators);
  const auto tenants = group_of(options.tenant_group);
  if (!tenants) return propagate(tenants);
  const auto observers = group_of(options.observer_group);
  if (!observers) return propagate(observers);
  return Sockets{options.socket_path,
                 *operators,
                 options.directory + "/tenants.sock",
                 *tenants,
                 options.directory + "/status.sock",
                 *observers};
}

/// The request that a signal makes of us.
enum class Told { Nothing, HandOver, End };

/// SIGTERM is what service managers send, and a restart or an upgrade begins with it just as a stop does;
/// SIGHUP comes when a terminal is gone. Neither is a wish of somebody's that tenants end. SIGINT is: it
/// comes from a keyboard, and who ends a program there wants nothing of it left.
Told meaning_of(int signal, const CommandLine& options) {
  return signal == SIGINT || options.end_domains ? Told::End : Told::HandOver;
}

MpsDomains::Options options_of_domains(const CommandLine& options, const Sockets& sockets,
                                       const platform::Platform& platform, std::vector<std::string> gpus,
                                       ServiceManager& manager, std::shared_ptr<PrivilegedHelper> helper) {
  MpsDomains::Options made;
  made.helper = std::move(helper);
  made.directory = options.directory;
  made.control_program = platform.control_program;
  made.environment = platform.environment;
  made.gpus = std::move(gpus);
  made.outlive_us = !options.end_domains;
  made.log = {options.log_mib * mib, options.log_files};
  made.anchors = options.spares;
  made.group = sockets.tenant_group;
  if (made.outlive_us) {
    made.start_apart = [&manager](const std::string& domain, const mps::DaemonStart& start) {
      return start_daemon_apart(manager, domain, start);
    };
  }
  made.on_daemon = [&manager](const std::string& domain, pid_t daemon) {
    move_daemon_out(manager, domain, daemon);
  };
  return made;
}

/// The next agent begins with what one that was killed would have left.
[[noreturn]] void leave_to_the_next(Agent* agent) {
  if (agent != nullptr) agent->hand_over();
  os::leave_process_at_once(handed_over_status);
}

/// Called once.
Result<std::shared_ptr<os::Watch>> at_end_of(const os::Fd& process, os::EventLoop& loop,
                                             std::function<void()> what) {
  auto watch = std::make_shared<os::Watch>();
  auto watched = loop.watch_readable(process.get(), [raw = watch.get(), what = std::move(what)] {
    const auto done = what;  // the callback goes with the watch
    raw->cancel();
    done();
  });
  if (!watched) return propagate(watched);
  *watch = std::move(*watched);
  return watch;
}

/// A process that has rights which we have not.
struct Lost {
  const char* who;
  const char* what;  ///< is not so without it
};
constexpr Lost lost_keeper{"the process that looks at others",
                           "what other processes do is not seen any more"};
constexpr Lost lost_helper{"the process that is root's", "no MPS daemon is started or asked any more"};

/// We may not start another of these, and the next agent may. Where there is none to come, an agent that does
/// not see what others do is better than none.
void do_without(const Lost& lost, ServiceManager& manager, Agent* agent) {
  if (!manager.starts_the_next())
    return spdlog::error(
        "{} has ended, and nobody starts the next agent: {} (end this agent by SIGTERM, and start another)",
        lost.who, lost.what);
  spdlog::error("{} has ended: the next agent starts another", lost.who);
  leave_to_the_next(agent);
}

using Watches = std::vector<std::shared_ptr<os::Watch>>;

Result<Watches> watch_ends(const os::RightsKeeper& keeper, const PrivilegedHelper* helper,
                           os::EventLoop& loop, const std::function<void(const Lost&)>& lose) {
  auto first = at_end_of(keeper.process(), loop, [lose] { lose(lost_keeper); });
  if (!first) return propagate(first);
  Watches all{std::move(*first)};
  if (helper == nullptr) return all;
  auto second = at_end_of(helper->process(), loop, [lose] { lose(lost_helper); });
  if (!second) return propagate(second);
  all.push_back(std::move(*second));
  return all;
}

Result<AgentOptions> options_of_agent(const CommandLine& options, const Sockets& sockets,
                                      const platform::Platform& platform, PrivilegedHelper* helper,
                                      std::uint64_t descriptors_max) {
  AgentOptions made;
  made.socket_path = sockets.operators;
  made.operator_group = sockets.operator_group;
  made.tenants_socket_path = sockets.tenants;
  made.tenant_group = sockets.tenant_group;
  made.observers_socket_path = sockets.observers;
  made.observer_group = sockets.observer_group;
  made.version = platform::version();
  made.guard_test = describe(try_it(platform, helper, guard::Probed::GuardRanges));
  made.tenant_environment = platform.environment;
  made.gpus = machine_gpus(platform);
  made.strays = abi::stray_policy_from(options.strays).value_or(made.strays);
  made.stray_blocks_max = options.stray_blocks;
  made.hold = milliseconds(options.hold_s);
  made.longest_hold = milliseconds(options.longest_hold_s);
  made.fence_wait = milliseconds(options.fence_wait_s);
  made.limits = options.limits;
  made.lease = milliseconds(options.lease_s);
  made.turns = turns::policy_named(options.turns).value_or(made.turns);
  made.turn_max = Milliseconds(static_cast<std::int64_t>(options.turn_max_ms));
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

/// Nobody gets one where that cannot be; none: nobody was to.
std::optional<guard::ProbeResult> decide_on_spares(CommandLine& options, const platform::Platform& platform,
                                                   PrivilegedHelper* helper, ServiceManager& manager) {
  if (!options.spares) return std::nullopt;
  auto tested = try_spares(platform, helper, !manager.descriptors().empty());
  if (tested.answer == guard::ProbeResult::Answer::Fails) {
    spdlog::warn("no program gets a spare driver instance: {}", describe(tested));
    options.spares = false;
  }
  return tested;
}

/// The directory, and what an agent of a user of its own has besides.
struct Place {
  std::optional<os::FileLock> lock = {};  ///< none: the helper has it
  std::shared_ptr<PrivilegedHelper> helper = nullptr;
  std::optional<Result<os::KernelLogBell>> bell = {};
};

/// The GPU's devices, also those of the software GPU, which are memory files, and the pages that tenants
/// share with us.
std::vector<std::string> what_is_duplicated() {
  return {"/dev/nvidia-uvm",
          "/dev/nvidiactl",
          os::memory_file_link("nvidia-uvm"),
          os::memory_file_link("nvidiactl"),
          os::memory_file_link(abi::guard_page_name),
          os::memory_file_link(abi::spare_page_name)};
}

/// Takes the place: says who we are from now on, and has that process for what only root may do: an agent
/// that stays who has started it has none.
Result<Place> take_place(const CommandLine& options, const Sockets& sockets,
                         const std::vector<std::string>& arguments) {
  if (auto made = os::make_directories(options.directory); !made) return propagate(made, options.directory);
  if (!options.user.empty()) {
    auto own = become_own_user(options, sockets, arguments);
    if (!own) return propagate(own);
    return Place{std::nullopt, std::move(own->helper), std::move(own->bell)};
  }
  // Files that others have put there would lead root elsewhere.
  if (os::is_root() && os::may_others_write(options.directory))
    return fail(ErrorCode::PermissionDenied,
                "others may write in " + options.directory + ", as an agent with --user has left it",
                "start this one with --user as well, or remove that directory first");
  constexpr Milliseconds a_moment(500);
  auto lock = take_directory(options.directory, a_moment);
  if (!lock) return propagate(lock);
  // The folder is open: each socket and each domain in it says by itself who may use it.
  if (sockets.operator_group || sockets.tenant_group || sockets.observer_group) {
    if (auto through = os::let_through(options.directory); !through) return propagate(through);
  }
  return Place{std::move(*lock)};
}

/// Checks that processes are seen: where /proc is mounted with hidepid and its gid= names no group of ours,
/// nobody's is.
Status check_others_are_seen(const os::RightsKeeper& keeper) {
  if (os::read_small_file(os::proc_folder(keeper.pid()) + "/status")) return {};
  return fail(ErrorCode::PermissionDenied, "/proc does not show this user the processes of others (hidepid)",
              "mount it with gid= of a group of that user's, or leave --user out");
}

/// Hands to others what this platform's kernel is to have done by them.
void act_by(Place& place, os::Kernel& kernel) {
  if (!place.helper) return;
  if (const Status made = place.helper->make_devices(); !made)
    spdlog::warn("the GPU's devices have to be there already: {}", to_string(made.error()));
  kernel.files_by(place.helper);
  if (place.bell) kernel.use_bell(std::move(*place.bell));
}

Result<int> serve(CommandLine options, const std::vector<std::string>& arguments) {
  const auto keeper = leave_rights_to_keeper();
  if (!keeper) return propagate(keeper);
  const std::uint64_t descriptors_max = raise_descriptors(options.descriptors);
  const auto sockets = sockets_of(options);
  if (!sockets) return propagate(sockets);
  auto place = take_place(options, *sockets, arguments);
  if (!place) return propagate(place);
  if (auto seen = check_others_are_seen(**keeper); !seen) return propagate(seen);
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
  const auto lose = [&](const Lost& lost) {
    if (told == Told::Nothing && (serving == nullptr || !serving->is_shutting_down()))
      do_without(lost, *manager, serving);
  };
  const auto ends = watch_ends(**keeper, place->helper.get(), **loop, lose);
  if (!ends) return propagate(ends);
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
  const os::EnvironmentScope of_the_gpu = which_gpu(*platform);
  act_by(*place, *platform->kernel);
  const auto broker = start_broker(**loop, *platform->kernel, *keeper);
  if (!broker) return propagate(broker);
  platform::hear_promptly();
  auto gpus = find_gpus(*platform, options);
  if (!gpus) return propagate(gpus);

  const auto spare_test = decide_on_spares(options, *platform, place->helper.get(), *manager);
  MpsDomains domains(
      **loop, *platform->kernel,
      options_of_domains(options, *sockets, *platform, std::move(*gpus), *manager, place->helper));
  auto agent_options = options_of_agent(options, *sockets, *platform, place->helper.get(), descriptors_max);
  if (!agent_options) return propagate(agent_options);
  GpuDetectors detectors(**loop, *platform->kernel, clock, domains, platform->nvml_library,
                         agent_options->gpus, options.sparse);
  agent_options->spare_test = spare_test;
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

constexpr const char* second_supervisor = "--second-supervisor";

/// The same command again, under our eyes.
Result<int> supervise(const CommandLine& options, const std::vector<std::string>& arguments) {
  raise_descriptors(0);  // the descriptors that the agent has may all be ours to keep
  std::optional<KeptDescriptors> kept;
  if (options.second_supervisor) {
    os::Socket first{os::Fd(SecondSupervisor::socket_descriptor)};
    kept = wait_to_be_needed(first);
    if (!kept) return 0;
    spdlog::error("the supervisor is gone: its second one takes its place, with {} descriptors",
                  kept->size());
  }
  if (auto made = os::make_directories(options.directory); !made) return propagate(made, options.directory);
  auto program = os::executable_path();
  if (!program) return propagate(program);
  std::vector<std::string> command = {*program};
  std::vector<std::string> second = {*program};
  for (const std::string& each : arguments) {
    if (each != "--supervised" && each != second_supervisor) command.push_back(each);
    if (each != second_supervisor) second.push_back(each);
  }
  second.emplace_back(second_supervisor);
  os::RealKernel kernel;
  const std::string notify_path = std::filesystem::absolute(options.directory + "/notify.sock").string();
  auto supervisor = Supervisor::create(kernel, std::move(command), notify_path,
                                       milliseconds(options.watchdog_s), std::move(second), std::move(kept));
  if (!supervisor) return propagate(supervisor);
  if (!options.user.empty()) {
    const auto user = os::user_named(options.user);
    if (!user) return propagate(user);
    if (auto given = os::give_to_user(notify_path, user->uid); !given) return propagate(given);
  }
  return (*supervisor)->run();
}

}  // namespace
}  // namespace firebreak::agent

int main(int argument_count, char** arguments) {
  using namespace firebreak;
  agent::CommandLine options;
  if (const auto status = agent::read_command_line(argument_count, arguments, options)) return *status;
  set_up_logging("firebreakd", "warn");
  agent::log_to_journal("firebreakd");
  if (options.shelf) {
    os::Socket socket{os::Fd(agent::Shelves::socket_descriptor)};
    agent::serve_shelf(socket);
    (void)socket.release().release();
    return 0;
  }
  if (options.rights_keeper) {
    os::Socket socket{os::Fd(os::RightsKeeper::socket_descriptor)};
    const auto links = agent::what_is_duplicated();
    os::keep_rights(socket, [&links](os::Socket& asker) { os::serve_looks(asker, links); });
    return 0;
  }
  if (options.privileged_helper) {
    os::Socket socket{os::Fd(os::HelperProcess::socket_descriptor)};
    const Status done =
        agent::be_privileged_helper(options, socket, os::Fd(os::HelperProcess::socket_descriptor + 1));
    if (!done) fmt::print(stderr, "firebreakd: {}\n", to_string(done.error()));
    return done ? 0 : 1;
  }
  const std::vector<std::string> all(arguments + 1, arguments + argument_count);
  if (options.supervised) {
    const auto status = agent::supervise(options, all);
    if (status) return *status;
    fmt::print(stderr, "firebreakd: {}\n", to_string(status.error()));
    return 1;
  }
  const auto served = agent::serve(options, all);
  if (served) return *served;
  fmt::print(stderr, "firebreakd: {}\n", to_string(served.error()));
  return 1;
}
