// SPDX-License-Identifier: Apache-2.0
#include <fmt/format.h>
#include <signal.h>
#include <CLI/CLI.hpp>

#include <cstdio>

#include "agent/faults/strays/guarded_watch.h"
#include "agent/faults/watch/nvml_library.h"
#include "agent/faults/watch/process_finder.h"
#include "agent/faults/watch/report.h"
#include "commands/cli/agent_socket.h"
#include "commands/cli/commands.h"
#include "commands/cli/fault_list.h"
#include "ground/base/utc.h"
#include "ground/os/event_loop.h"
#include "ground/os/self.h"
#include "ground/platform/platform.h"

namespace firebreak::cli {
namespace {

struct Options {
  std::string socket_path;
  bool json = false;
  bool everybody = false;
  std::vector<pid_t> pids;
  std::string gpu;
  std::vector<std::string> mps_logs;
};

/// What we say at the start goes to standard error, so that standard output holds incidents alone; as JSON
/// everything goes to standard output.
class Printer {
 public:
  explicit Printer(bool json) : json_(json) {}

  template <class... What>
  void aside(const What&... what) const {
    if (json_) return print(stdout, watch::json_of(what...));
    print(stderr, watch::text_of(what...));
  }
  void stray(const strays::Stray& stray) const {
    print(stdout, json_ ? strays::json_of(stray) : now() + " " + strays::text_of(stray));
  }
  void guard(pid_t pid, const strays::GuardReport& guard) const {
    if (json_) return print(stdout, strays::json_of(pid, guard));
    print(stderr, strays::text_of(pid, guard));
  }
  void last_count(pid_t pid, const strays::Summary& summary) const {
    if (summary.count == 0) return;
    if (json_) return print(stdout, strays::json_of(pid, summary));
    print(stdout, now() + " " + strays::text_of(pid, summary));
  }
  void incident(const fault::Incident& incident) {
    const auto change = news_.of(incident);
    if (!change) return;
    print(stdout,
          json_ ? watch::json_of(incident, *change) : now() + " " + watch::text_of(incident, *change));
  }

 private:
  static void print(std::FILE* to, const std::string& line) {
    fmt::print(to, "{}\n", line);
    std::fflush(to);
  }
  static std::string now() { return in_utc_ms(std::chrono::system_clock::now()); }

  bool json_;
  watch::IncidentNews news_;
};

watch::ProcessFinderOptions process_finder_options(const platform::Platform& platform) {
  watch::ProcessFinderOptions options;
  options.scan.ignored_pid = os::own_pid();
  if (!platform.mps_server_argument.empty())
    options.scan.server_words.push_back(platform.mps_server_argument);
  if (!platform.state_variable.empty()) {
    options.scan.gpu_variable = platform.state_variable;
    options.scan.gpu_value = os::environment_variable(platform.state_variable);
  }
  return options;
}

watch::ProcessFinderCallbacks process_finder_callbacks(const Printer& printer, strays::GuardedWatch& strays) {
  watch::ProcessFinderCallbacks callbacks;
  callbacks.on_process = [&](const watch::GpuProcess& process, const Status& followed) {
    printer.aside(process, followed);
    if (followed) strays.follow(process.pid);
  };
  callbacks.on_server = [&printer](const watch::MpsServer& server, const Status& log) {
    printer.aside(server, log);
  };
  return callbacks;
}

watch::WatcherCallbacks watcher_callbacks(Printer& printer, const strays::GuardedWatch& strays) {
  watch::WatcherCallbacks callbacks;
  callbacks.on_incident = [&printer](const fault::Incident& incident) { printer.incident(incident); };
  callbacks.on_exit = [&](const watch::ProcessExit& exit) {
    printer.last_count(exit.pid, strays.summary_of(exit.pid));
  };
  return callbacks;
}

/// Whom to watch, as the command line says.
Status follow(const Options& options, watch::ProcessFinder& process_finder) {
  for (const pid_t pid : options.pids) {
    if (Status followed = process_finder.follow(pid); !followed) return followed;
  }
  const auto whom = options.everybody ? watch::Whom::Everybody : watch::Whom::SameDomains;
  if (Status looking = process_finder.look_around(whom); !looking) return looking;
  if (!options.everybody) return {};
  if (const std::size_t refused = process_finder.refused(); refused > 0) {
    fmt::print(stderr, "{} processes of other users cannot be looked into (run as root to watch them too)\n",
               refused);
  }
  return {};
}

Status keep_watch(const Options& options) {
  const auto platform = platform::choose({}, options.gpu);
  if (!platform) return propagate(platform);
  platform::hear_promptly();
  const auto loop = os::EventLoop::create();
  if (!loop) return propagate(loop);
  const auto signals =
      (*loop)->on_signals({SIGINT, SIGTERM, SIGHUP}, [raw = loop->get()](int) { raw->stop(); });
  if (!signals) return propagate(signals);

  const SystemClock clock;
  Printer printer(options.json);
  watch::WatcherOptions watcher;
  watcher.nvml_library = platform->nvml_library;
  for (const watch::NvmlGpu& gpu : watch::gpus_listed_by_nvml(platform->nvml_library))
    watcher.places.gpus.push_back(gpu.pci);
  watcher.mps_log_directories = options.mps_logs;
  strays::GuardedWatch strays(
      **loop, *platform->kernel,
      {[&](const strays::Stray& stray) { printer.stray(stray); },
       [&](pid_t pid, const strays::GuardReport& guard) { printer.guard(pid, guard); }});
  watch::ProcessFinder process_finder(**loop, *platform->kernel, clock, process_finder_options(*platform),
                                      process_finder_callbacks(printer, strays), std::move(watcher),
                                      strays.hear(watcher_callbacks(printer, strays)));
  strays.attach(process_finder.watcher());
  process_finder.watcher().start();
  for (const watch::SourceState& source : process_finder.watcher().sources()) printer.aside(source);
  if (Status followed = follow(options, process_finder); !followed) return followed;
  (*loop)->run();
  process_finder.watcher().finish();
  return {};
}

/// One account of a fault: where an agent tells of those processes, nobody else does.
bool is_for_agent(const Options& options) {
  return options.gpu.empty() && options.mps_logs.empty() &&
         is_told_by_agent(options.socket_path, options.pids);
}

int run(const Options& options) {
  if (is_for_agent(options)) {
    const Status followed = follow_faults(options.socket_path, options.json);
    return followed ? 0 : complain(to_string(followed.error()));
  }
  if (auto held = os::hold_signals({SIGINT, SIGTERM, SIGHUP}); !held)
    return complain(to_string(held.error()));
  const Status kept = keep_watch(options);
  return kept ? 0 : complain(to_string(kept.error()));
}

}  // namespace

void add_watch(CLI::App& app, Action& action) {
  auto options = std::make_shared<Options>();
  CLI::App* command = app.add_subcommand(
      "watch", "Prints each fault as it happens, with the process that caused it; touches nobody");
  command->footer(
      "Where an agent answers this is `firebreak faults --follow`, unless --pid names a process that it does "
      "not know. Without an agent, and without --pid and --all: what the GPU itself tells. Ends on SIGINT "
      "and "
      "SIGTERM with exit status 0.");
  command->add_flag("--json", options->json, "One JSON object a line");
  command
      ->add_option("--pid", options->pids,
                   "Watch this process and those of its MPS domain, which share its faults; may be given "
                   "several times")
      ->check(CLI::PositiveNumber);
  command->add_flag("--all", options->everybody, "Watch every process that uses the GPU, and will");
  command->add_option("--gpu", options->gpu, "real or soft (default: FIREBREAK_GPU, else real)")
      ->check(CLI::IsMember({"real", "soft"}));
  command->add_option("--mps-log", options->mps_logs,
                      "Listen to the MPS server log in this directory; --all finds those of running servers");
  add_socket_option(*command, options->socket_path);
  command->callback([options, &action] { action = [options] { return run(*options); }; });
}

}  // namespace firebreak::cli
