// SPDX-License-Identifier: Apache-2.0
#include <fmt/format.h>
#include <signal.h>
#include <CLI/CLI.hpp>

#include <functional>
#include <utility>

#include "cli/agent_socket.h"
#include "cli/commands.h"
#include "cli/error_relay.h"
#include "client/agent_link.h"
#include "fault/core_dump.h"
#include "guard/guard.h"
#include "guard/trial.h"
#include "os/event_loop.h"
#include "os/real_kernel.h"
#include "os/self.h"
#include "platform/platform.h"

namespace firebreak::cli {
namespace {

/// A kernel's mangled name may be long; what it begins with is enough, and fits into a message.
constexpr std::size_t longest_line_told = 4096;

struct Options {
  std::string socket_path;
  std::string name;
  bool standby = false;
  bool guard = false;
  bool guard_ipc = false;
  bool report_only = false;
  std::string gpu;
  std::uint32_t sm_percent = 0;
  std::uint32_t memory_mib = 0;
  std::vector<std::string> command;
};

/// What shells say of a process that a signal ended.
int status_of(const os::ExitStatus& exit) { return exit.signal != 0 ? 128 + exit.signal : exit.exit_code; }

/// What the tenant's environment will have: what the agent says goes before our own.
std::optional<std::string> tenant_variable(const abi::Placed& placed, const std::string& name) {
  for (const auto& [its_name, value] : placed.environment) {
    if (its_name == name) return value;
  }
  return os::environment_variable(name);
}

/// Null: CUDA will print nothing about faults there, and the tenant's standard error is ours.
Result<std::unique_ptr<ErrorRelay>> relay_for(const abi::Placed& placed) {
  if (tenant_variable(placed, fault::core_dump_progress_variable) != "1") return nullptr;
  return ErrorRelay::create();
}

/// Tells the agent of the lines that name who faulted, and stops where it does not listen any more.
ErrorRelay::OnLine core_dump_teller(client::AgentLink& link, pid_t pid) {
  return [&link, pid, listens = true](std::string_view line) mutable {
    if (!listens || !fault::is_about_exception(line)) return;
    const std::string text(line.substr(0, longest_line_told));
    listens = link.tell(abi::Output{pid, text + "\n"}).has_value();
  };
}

/// What the tenant is guarded by; whether that works here is known by then, and the guard itself says so.
Status prepare_guard(os::SpawnRequest& request, bool shares_memory) {
  auto preload = platform::guard_preload();
  if (!preload) return propagate(preload);
  request.environment.push_back(std::move(*preload));
  if (shares_memory) request.environment.emplace_back(guard::sharing_variable, "1");
  const auto platform = platform::choose();
  if (!platform) return propagate(platform);
  (void)guard::known_or_tried_verdict(*platform->kernel, platform::guard_trial(*platform));
  return {};
}

abi::StrayPolicy stray_policy(const Options& options) {
  return options.report_only ? abi::StrayPolicy::Report : abi::StrayPolicy::Default;
}

/// The tenant's process, from its start to its end; signals that are meant for it are passed on, the first
/// SIGTERM as a request to the agent: with a kernel under way it would take the tenant's neighbours along.
class Attendant {
 public:
  /// Before any other thread starts: the signals are then nobody else's.
  static Result<std::unique_ptr<Attendant>> create() {
    auto loop = os::EventLoop::create();
    if (!loop) return propagate(loop);
    std::unique_ptr<Attendant> attendant(new Attendant(std::move(*loop)));
    auto signals = attendant->loop_->on_signals(
        {SIGTERM, SIGINT, SIGHUP}, [raw = attendant.get()](int number) { raw->pass_on(number); });
    if (!signals) return propagate(signals);
    attendant->signals_ = std::move(*signals);
    return attendant;
  }

  /// `standard_error`: the tenant's, or -1: ours.
  Result<pid_t> start(const Options& options, const abi::Placed& placed, int standard_error) {
    os::SpawnRequest request;
    request.command = options.command;
    request.environment = placed.environment;
    if (options.guard) {
      if (const Status prepared = prepare_guard(request, options.guard_ipc); !prepared)
        return propagate(prepared);
    }
    request.standard_input = 0;
    request.standard_error = standard_error;
    const auto pid = kernel_.spawn(request);
    if (!pid) return pid;
    auto pidfd = kernel_.pidfd_open(*pid);
    if (!pidfd) return propagate(pidfd);
    pid_ = *pid;
    pidfd_ = std::move(*pidfd);
    return pid;
  }

  void signal(int number) {
    if (pidfd_) (void)kernel_.send_signal(pidfd_, number);
  }

  /// What ends the process in good order; false: it cannot.
  void end_by(std::function<bool(pid_t)> end) { end_ = std::move(end); }

  Result<os::ExitStatus> wait() {
    auto watch = loop_->watch_readable(pidfd_.get(), [this] {
      const auto reaped = kernel_.try_wait(pid_);
      if (reaped && *reaped) exit_ = **reaped;
      loop_->stop();
    });
    if (!watch) return propagate(watch);
    loop_->run();
    if (!exit_) return fail(ErrorCode::Internal, fmt::format("process {} ended unseen", pid_));
    return *exit_;
  }

 private:
  explicit Attendant(std::unique_ptr<os::EventLoop> loop) : loop_(std::move(loop)) {}

  void pass_on(int number) {
    const auto end = number == SIGTERM ? std::exchange(end_, nullptr) : nullptr;
    if (!end || !end(pid_)) signal(number);
  }

  os::RealKernel kernel_;
  std::unique_ptr<os::EventLoop> loop_;
  os::Watch signals_;
  pid_t pid_ = 0;
  os::Fd pidfd_;
  std::optional<os::ExitStatus> exit_;
  std::function<bool(pid_t)> end_;
};

/// The agent answers before anything of the end is done, so this does not keep us.
std::function<bool(pid_t)> end_through(client::AgentLink& link, const std::string& name) {
  return [&link, name](pid_t pid) { return link.ask(abi::EndProcess{name, pid}).has_value(); };
}

Result<int> run(const Options& options) {
  auto attendant = Attendant::create();
  if (!attendant) return propagate(attendant);
  auto link = client::AgentLink::connect(options.socket_path);
  if (!link) return propagate(link);
  const abi::Role role = options.standby ? abi::Role::Standby : abi::Role::Active;
  auto answer =
      (*link)->ask(abi::Place{options.name, role, options.gpu, options.sm_percent, options.memory_mib});
  if (!answer) return propagate(answer);
  const auto* placed = std::get_if<abi::Placed>(&answer->message);
  if (placed == nullptr) return fail(ErrorCode::Protocol, "the agent did not say where to run");
  const auto relay = relay_for(*placed);
  if (!relay) return propagate(relay);
  const auto pid = (*attendant)->start(options, *placed, *relay ? (*relay)->tenant_end() : -1);
  if (!pid) return propagate(pid);
  const auto adopted = (*link)->ask(abi::Adopt{options.name, role, *pid, stray_policy(options)});
  const Status relayed = *relay ? (*relay)->start(core_dump_teller(**link, *pid)) : Status{};
  if (!adopted || !relayed) (*attendant)->signal(SIGKILL);
  if (adopted) (*attendant)->end_by(end_through(**link, options.name));
  const auto exit = (*attendant)->wait();
  if (!adopted) return propagate(adopted);
  if (!relayed) return propagate(relayed);
  if (!exit) return propagate(exit);
  return status_of(*exit);
}

}  // namespace

void add_run(CLI::App& app, Action& action) {
  auto options = std::make_shared<Options>();
  CLI::App* command = app.add_subcommand(
      "run", "Starts a tenant under the agent: firebreak run --name NAME [--standby] -- COMMAND...");
  command->add_option("--name", options->name, "The tenant's name")->required();
  command->add_flag("--standby", options->standby, "Start the tenant's standby, in the other MPS domain");
  CLI::Option* guard = command->add_flag(
      "--guard", options->guard,
      "Blanket unused GPU addresses in the tenant's process: a stray access harms nobody and is reported");
  command
      ->add_flag(
          "--guard-ipc", options->guard_ipc,
          "Let the driver allocate, for programs that share memory with cuIpcGetMemHandle: less is guarded")
      ->needs(guard);
  command->add_flag(
      "--report-only", options->report_only,
      "Where the tenant is guarded and strays, say so and let it go on, up to a number of strays");
  command->add_option("--sm-percent", options->sm_percent, "The share of the GPU's SMs that it may use")
      ->check(CLI::Range(1, 100));
  command
      ->add_option("--memory-mib", options->memory_mib,
                   "The device memory that it may have, CUDA's own in its process included")
      ->check(CLI::Range(1U, 1U << 30));
  command->add_option("--gpu", options->gpu,
                      "On the GPU of this UUID, or how that begins, where the agent has several");
  add_socket_option(*command, options->socket_path);
  command->add_option("COMMAND", options->command, "The program and its arguments")->required();
  command->positionals_at_end();
  command->callback([options, &action] {
    action = [options] {
      const auto status = run(*options);
      return status ? *status : complain(to_string(status.error()));
    };
  });
}

}  // namespace firebreak::cli
