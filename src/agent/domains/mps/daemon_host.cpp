// SPDX-License-Identifier: Apache-2.0
#include "agent/domains/mps/daemon_host.h"

#include <fcntl.h>
#include <spdlog/spdlog.h>

#include <array>
#include <utility>

#include "agent/domains/mps/domain.h"
#include "ground/os/file.h"
#include "ground/os/logs.h"
#include "ground/os/socket.h"

namespace firebreak::mps {
namespace {

constexpr std::string_view several_users_option = "-multiuser-server";

class OwnDaemonHost final : public DaemonHost {
 public:
  OwnDaemonHost(os::Kernel& kernel, DomainOptions options)
      : kernel_(kernel),
        options_(std::move(options)),
        pipe_directory_(pipe_directory_in(options_.directory)),
        log_directory_(log_directory_in(options_.directory)),
        output_path_(output_path_in(options_.directory)) {}

  Status make_directories() override {
    // The longest name that NVIDIA's daemon makes a socket of.
    if (Status fits = os::check_socket_path(pipe_directory_ + "/control_privileged"); !fits) return fits;
    for (const std::string& path : {pipe_directory_, log_directory_}) {
      if (Status made = os::make_directories(path); !made) return made;
    }
    if (options_.reader) {
      if (Status opened = let_reader_in(); !opened) return opened;
    } else if (options_.group) {
      if (Status opened = os::let_through(pipe_directory_); !opened) return opened;
    }
    const auto through = options_.group ? options_.group : options_.reader;
    return through ? os::let_group_through(options_.directory, *through) : Status{};
  }

  Status clear_pipe_directory() override { return os::clear_directory(pipe_directory_); }

  Result<Daemon> start_daemon() override {
    for (const std::string& log : log_paths()) {
      if (Status rotated = os::rotate_away(log, options_.log); !rotated) return propagate(rotated);
    }
    const Result<os::Fd> output = kernel_.open(output_path_, O_WRONLY | O_CREAT | O_APPEND);
    if (!output) return propagate(output);
    if (options_.reader) {
      if (Status opened = os::let_group_read(*output, *options_.reader); !opened) return propagate(opened);
    }
    DaemonStart start{{options_.control_program, "-f"}, environment(), output_path_};
    const bool is_for_several = options_.group || options_.reader;
    if (is_for_several && knows_several_users()) start.command.emplace_back(several_users_option);
    if (options_.start_apart) {
      const Result<pid_t> apart = options_.start_apart(start);
      if (apart) return followed(*apart, false);
      if (apart.error().code != ErrorCode::Unsupported)
        spdlog::warn("MPS domain {}: its daemon is started as a child: {}", options_.name,
                     to_string(apart.error()));
    }
    return start_child(std::move(start), *output);
  }

  Result<os::ProgramResult> control(const std::string& command, Milliseconds timeout) override {
    os::SpawnRequest request;
    request.command = {options_.control_program};
    request.environment = environment();
    return os::run_program(kernel_, request, command + "\n", timeout);
  }

  Status bound_logs() override {
    for (const std::string& path : log_paths()) {
      if (auto moved = os::rotate_in_place(path, options_.log); !moved) return propagate(moved);
    }
    return {};
  }

 private:
  std::array<std::string, 2> log_paths() const { return {output_path_, log_directory_ + "/control.log"}; }

  /// Lets in a reader who does not own these, and keeps the domain.
  Status let_reader_in() const {
    if (Status opened = os::let_group_list(pipe_directory_, *options_.reader, true); !opened) return opened;
    return os::let_group_list(log_directory_, *options_.reader, false);
  }

  Environment environment() const {
    Environment all = options_.environment;
    const Environment own = client_environment_of(options_);
    all.insert(all.end(), own.begin(), own.end());
    return all;
  }

  /// A server without the option is one user's, and whoever else comes waits until all of that user's clients
  /// are gone (H200, results/h200/mps-users.json). A daemon that does not know the option would not start.
  bool knows_several_users() {
    const auto program = kernel_.read_file(options_.control_program);
    const bool knows = program && program->find(several_users_option.substr(1)) != std::string::npos;
    if (!knows) spdlog::warn("MPS domain {}: tenants of several users wait for each other", options_.name);
    return knows;
  }

  Result<Daemon> start_child(DaemonStart start, const os::Fd& output) {
    os::SpawnRequest request;
    request.command = std::move(start.command);
    request.environment = std::move(start.environment);
    request.standard_output = output.get();
    request.standard_error = output.get();
    request.new_session = true;
    request.die_with_parent = !options_.outlives_us;
    const Result<pid_t> pid = kernel_.spawn(request);
    if (!pid) return propagate(pid, "start MPS domain " + options_.name);
    auto started = followed(*pid, true);
    if (started && options_.on_daemon) options_.on_daemon(*pid);
    return started;
  }

  Result<Daemon> followed(pid_t pid, bool is_child) {
    Result<os::Fd> process = kernel_.pidfd_open(pid);
    if (!process) return propagate(process, "start MPS domain " + options_.name);
    return Daemon{pid, std::move(*process), is_child};
  }

  os::Kernel& kernel_;
  DomainOptions options_;
  std::string pipe_directory_;
  std::string log_directory_;
  std::string output_path_;
};

}  // namespace

std::string pipe_directory_in(const std::string& directory) { return directory + "/pipe"; }
std::string log_directory_in(const std::string& directory) { return directory + "/log"; }
std::string output_path_in(const std::string& directory) {
  return log_directory_in(directory) + "/server.log";
}

std::unique_ptr<DaemonHost> own_daemon_host(os::Kernel& kernel, const DomainOptions& options) {
  return std::make_unique<OwnDaemonHost>(kernel, options);
}

}  // namespace firebreak::mps
