// SPDX-License-Identifier: Apache-2.0
#include "agent/domains/mps/domain.h"

#include <spdlog/spdlog.h>

#include <algorithm>
#include <csignal>

#include "agent/domains/mps/control_output.h"
#include "agent/domains/mps/leftovers.h"
#include "ground/os/file.h"
#include "ground/os/processes.h"
#include "ground/os/program.h"
#include "ground/os/self.h"

namespace firebreak::mps {
namespace {

constexpr Milliseconds between_questions{10};
constexpr Milliseconds one_question{1'000};
constexpr Milliseconds death_timeout{5'000};
constexpr std::size_t last_words_bytes = 4096;
constexpr const char* visible_devices = "CUDA_VISIBLE_DEVICES";

Monotonic now() { return SystemClock().now(); }

Milliseconds left_until(Monotonic deadline) {
  return std::max(std::chrono::ceil<Milliseconds>(deadline - now()), Milliseconds(0));
}

/// Returns whether no daemon answered the command. A failing exit status alone does not say so: it may come
/// with an answer.
bool means_no_daemon(const os::ProgramResult& result) {
  const bool said_nothing = result.output.find_first_not_of(" \r\n") == std::string::npos;
  return result.status.signal != 0 || (result.status.exit_code != 0 && said_nothing) ||
         result.output.find("Cannot find MPS control daemon") != std::string::npos;
}

bool is_readable(os::Kernel& kernel, int fd, Milliseconds timeout) {
  const auto readable = kernel.poll(std::span(&fd, 1), timeout);
  return readable && !readable->empty();
}

}  // namespace

Domain::Domain(os::Kernel& kernel, DomainOptions options)
    : kernel_(kernel),
      options_(std::move(options)),
      pipe_directory_(pipe_directory_in(options_.directory)),
      output_path_(output_path_in(options_.directory)) {}

Domain::~Domain() { static_cast<void>(quit(options_.quit_timeout)); }

Result<std::unique_ptr<Domain>> Domain::start(os::Kernel& kernel, DomainOptions options) {
  std::unique_ptr<Domain> domain(new Domain(kernel, std::move(options)));
  if (Status found = domain->find_control_program(); !found) return propagate(found);
  DomainOptions& known = domain->options_;
  if (!known.host) known.host = own_daemon_host(kernel, known);
  if (Status made = known.host->make_directories(); !made) return propagate(made);
  if (Status ready = domain->take_over(); !ready) return propagate(ready);
  if (domain->daemon_pid_ != 0) return domain;
  if (Status launched = domain->launch(); !launched) return propagate(launched);
  if (Status answers = domain->wait_until_it_answers(); !answers) return propagate(answers);
  return domain;
}

Status Domain::find_control_program() {
  const auto program = os::find_program(options_.control_program);
  if (!program) {
    return fail(ErrorCode::NotFound, "no MPS: " + options_.control_program + " is not in PATH",
                "install the driver's compute utilities, or use the software GPU (FIREBREAK_GPU=soft)");
  }
  options_.control_program = *program;
  return {};
}

Status Domain::take_over() {
  if (!options_.takes_over) return {};
  const auto daemon = find_daemon(kernel_, options_.control_program, pipe_directory_);
  if (!daemon) return clean("its daemon was gone");
  if (!has_our_gpu(daemon->environment)) return clean("its daemon had another GPU");
  if (!adopt(*daemon)) return clean("its daemon did not answer");
  takeover_ = "daemon " + std::to_string(daemon_pid_) + " was left running and is used on, with " +
              std::to_string(count_clients()) + " clients that go on";
  return {};
}

/// Another GPU may have been asked for since.
bool Domain::has_our_gpu(const std::string& environment) const {
  const auto inherited = os::environment_variable(visible_devices);
  const std::string wanted = options_.gpu.empty() ? inherited.value_or("") : options_.gpu;
  return os::variable_in(environment, visible_devices).value_or("") == wanted;
}

bool Domain::adopt(const Leftover& daemon) {
  auto pidfd = kernel_.pidfd_open(daemon.pid);
  if (!pidfd || !list_servers(options_.command_timeout)) return false;
  daemon_pid_ = daemon.pid;
  daemon_ = std::move(*pidfd);
  is_child_ = false;
  is_taken_over_ = true;
  return running();
}

std::size_t Domain::count_clients() {
  std::size_t count = 0;
  for (const pid_t server : server_pids().value_or(std::vector<pid_t>())) {
    count += clients(server).value_or(std::vector<pid_t>()).size();
  }
  return count;
}

Status Domain::clean(const std::string& why) {
  daemon_pid_ = 0;
  const auto left = find_processes(kernel_, options_.control_program, pipe_directory_);
  const auto files = kernel_.list_directory(pipe_directory_);
  if (left.empty() && files && files->empty()) return {};
  takeover_ = "what was left of it is removed, since " + why;
  if (!left.empty()) takeover_ += " (" + std::to_string(left.size()) + " processes ended)";
  if (Status ended = end_all(kernel_, left, death_timeout); !ended) return ended;
  return options_.host->clear_pipe_directory();
}

Status Domain::launch() {
  auto daemon = options_.host->start_daemon();
  if (!daemon) return propagate(daemon);
  daemon_pid_ = daemon->pid;
  daemon_ = std::move(daemon->process);
  is_child_ = daemon->is_child;
  is_taken_over_ = false;
  return {};
}

Status Domain::wait_until_it_answers() {
  const Monotonic deadline = now() + options_.start_timeout;
  const int daemon = daemon_.get();
  while (now() < deadline) {
    const auto ended = kernel_.poll(std::span(&daemon, 1), between_questions);
    if (!ended) return propagate(ended);
    if (!ended->empty()) {
      return fail(ErrorCode::Unavailable, "MPS domain " + options_.name + " ended at once: " + last_words(),
                  "is another MPS daemon using " + pipe_directory_ + ", or the driver not loaded?");
    }
    if (list_servers(std::min(one_question, left_until(deadline)))) return {};
  }
  return fail(ErrorCode::Timeout, "MPS domain " + options_.name + " does not answer after " +
                                      std::to_string(options_.start_timeout.count()) +
                                      " ms: " + last_words());
}

Result<std::string> Domain::control(const std::string& command, Milliseconds timeout) const {
  Result<os::ProgramResult> result = options_.host->control(command, timeout);
  if (!result) return propagate(result, "MPS command \"" + command + "\"");
  if (means_no_daemon(*result)) {
    return fail(ErrorCode::Unavailable, "MPS domain " + options_.name + " does not take commands");
  }
  return std::move(result->output);
}

std::string Domain::last_words() const {
  const Result<std::string> output = os::read_tail(output_path_, last_words_bytes);
  if (!output) return "it printed nothing";
  const std::size_t end = output->find_last_not_of("\n ");
  if (end == std::string::npos) return "it printed nothing";
  const std::size_t before = output->rfind('\n', end);
  const std::size_t begin = before == std::string::npos ? 0 : before + 1;
  return output->substr(begin, end + 1 - begin);
}

Environment Domain::client_environment() const { return client_environment_of(options_); }

Environment client_environment_of(const DomainOptions& options) {
  Environment environment = {{"CUDA_MPS_PIPE_DIRECTORY", pipe_directory_in(options.directory)},
                             {"CUDA_MPS_LOG_DIRECTORY", log_directory_in(options.directory)}};
  // The UUID means the same GPU to the client, for which the server has numbered what it has anew.
  if (!options.gpu.empty()) environment.emplace_back(visible_devices, options.gpu);
  return environment;
}

Result<std::vector<pid_t>> Domain::server_pids() { return list_servers(options_.command_timeout); }

Result<std::vector<pid_t>> Domain::list_servers(Milliseconds timeout) {
  const Result<std::string> output = control("get_server_list", timeout);
  if (!output) return propagate(output);
  Result<std::vector<pid_t>> pids = parse_process_ids(*output);
  if (pids) remember_servers(*pids);
  return pids;
}

void Domain::remember_servers(const std::vector<pid_t>& pids) {
  const std::lock_guard lock(mutex_);
  std::erase_if(servers_, [this](const auto& server) {
    return is_readable(kernel_, server.second.get(), Milliseconds(0));
  });
  for (const pid_t pid : pids) {
    if (servers_.contains(pid)) continue;
    if (Result<os::Fd> pidfd = kernel_.pidfd_open(pid)) servers_[pid] = std::move(*pidfd);
  }
}

Result<std::vector<pid_t>> Domain::clients(pid_t server) {
  const Result<std::string> output =
      control("get_client_list " + std::to_string(server), options_.command_timeout);
  if (!output) return propagate(output);
  return parse_process_ids(*output);
}

bool Domain::has_living(std::span<const pid_t> clients) const {
  return std::ranges::any_of(clients, [this](pid_t pid) {
    const auto name = kernel_.read_file(os::proc_folder(pid) + "/comm");
    return name || name.error().code != ErrorCode::NotFound;
  });
}

Status Domain::terminate_client(pid_t server, pid_t client, Milliseconds timeout) const {
  const Result<std::string> output =
      control("terminate_client " + std::to_string(server) + " " + std::to_string(client), timeout);
  if (!output) return propagate(output);
  return parse_answer(*output);
}

Result<ServerState> Domain::server_state(pid_t server) const {
  const Result<std::string> output =
      control("get_server_status " + std::to_string(server), options_.command_timeout);
  if (!output) return propagate(output);
  if (output->starts_with("ACTIVE")) return ServerState::Active;
  return output->starts_with("FAULT") ? ServerState::Fault : ServerState::Other;
}

Status Domain::start_server(uid_t user) {
  const Result<std::string> output =
      control("start_server -uid " + std::to_string(user), options_.start_timeout);
  if (!output) return propagate(output);
  return parse_answer(*output);
}

Status Domain::end_server(pid_t server) {
  const Monotonic deadline = now() + options_.server_end_timeout;
  auto process = kernel_.pidfd_open(server);
  // Asked once more: from here on the number means no other process.
  if (!process || !names(server)) return {};
  // The server's answer is written nowhere; whether it ends is what counts.
  static_cast<void>(control("shutdown_server " + std::to_string(server), options_.command_timeout));
  if (!is_readable(kernel_, process->get(), left_until(deadline))) {
    const auto theirs = clients(server);
    if (!theirs && theirs.error().code != ErrorCode::NotFound) return propagate(theirs);
    if (theirs && has_living(*theirs)) {
      return fail(ErrorCode::Unavailable, "MPS server " + std::to_string(server) + " ends with its " +
                                              std::to_string(theirs->size()) + " clients");
    }
    if (Status killed = kill_server(server, *process); !killed) return killed;
  }
  const Monotonic unnamed_by = now() + options_.command_timeout;
  while (names(server)) {
    if (now() >= unnamed_by)
      return fail(ErrorCode::Timeout,
                  "MPS still names server " + std::to_string(server) + ", which has ended");
    static_cast<void>(kernel_.poll({}, between_questions));
  }
  return {};
}

bool Domain::names(pid_t server) {
  const auto named = list_servers(options_.command_timeout);
  return named && std::ranges::count(*named, server) > 0;
}

Status Domain::kill_server(pid_t server, const os::Fd& process) {
  static_cast<void>(kernel_.send_signal(process, SIGKILL));
  if (is_readable(kernel_, process.get(), death_timeout)) return {};
  return fail(ErrorCode::Timeout, "MPS server " + std::to_string(server) + " does not end");
}

bool Domain::running() {
  if (daemon_pid_ == 0) return false;
  const int daemon = daemon_.get();
  const auto ended = kernel_.poll(std::span(&daemon, 1), Milliseconds(0));
  return ended && ended->empty();
}

Status Domain::quit(Milliseconds timeout) {
  if (daemon_pid_ == 0) return {};
  const Monotonic deadline = now() + timeout;
  if (running()) {
    // Servers that outlive their daemon can only be found while it can still be asked. What goes wrong here
    // ends in a kill.
    static_cast<void>(list_servers(left_until(deadline) / 2));
    static_cast<void>(control("quit", left_until(deadline)));
  }
  Status ended = end_daemon(deadline);
  end_servers(deadline);
  return ended;
}

void Domain::leave() {
  daemon_pid_ = 0;
  daemon_.reset();
  const std::lock_guard lock(mutex_);
  servers_.clear();
}

Status Domain::end_daemon(Monotonic deadline) {
  Status ended;
  if (is_child_) {
    const auto status = os::wait_for_child(kernel_, daemon_pid_, daemon_, left_until(deadline));
    if (!status || !*status) ended = os::kill_child(kernel_, daemon_pid_, daemon_);
  } else if (const int daemon = daemon_.get(); !is_readable(kernel_, daemon, left_until(deadline))) {
    static_cast<void>(kernel_.send_signal(daemon_, SIGKILL));
    if (!is_readable(kernel_, daemon, death_timeout)) {
      ended = fail(ErrorCode::Timeout, "MPS daemon " + std::to_string(daemon_pid_) + " does not end");
    }
  }
  daemon_pid_ = 0;
  daemon_.reset();
  return ended;
}

void Domain::end_servers(Monotonic deadline) {
  const std::lock_guard lock(mutex_);
  for (const auto& [pid, pidfd] : servers_) {
    const int number = pidfd.get();
    const auto gone = kernel_.poll(std::span(&number, 1), left_until(deadline));
    if (gone && gone->empty()) static_cast<void>(kernel_.send_signal(pidfd, SIGKILL));
  }
  servers_.clear();
}

}  // namespace firebreak::mps
