// SPDX-License-Identifier: Apache-2.0
#include "os/spawn.h"

#include <fcntl.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <csignal>
#include <string_view>

#include "os/descriptor_limit.h"
#include "os/errno_error.h"
#include "os/self.h"

namespace firebreak::os {
namespace {

constexpr unsigned close_range_cloexec = 1U << 2;
constexpr int exit_when_not_started = 127;

/// All that the child needs, made before fork(): between fork and exec nothing may allocate.
struct Launch {
  std::string program;
  std::vector<char*> arguments;
  std::vector<std::string> environment_text;
  std::vector<char*> environment;
  std::vector<std::pair<int, int>> descriptors;  ///< (ours, theirs)
  std::vector<int> staged;
  int highest_target = 2;
  bool new_session = false;
  bool die_with_parent = false;
  pid_t parent = 0;
  std::optional<rlimit> descriptors_max;
};

bool overrides(const SpawnRequest& request, std::string_view entry) {
  return std::any_of(request.environment.begin(), request.environment.end(), [&](const auto& pair) {
    return entry.size() > pair.first.size() && entry.starts_with(pair.first) &&
           entry[pair.first.size()] == '=';
  });
}

void fill_environment(const SpawnRequest& request, Launch& launch) {
  for (char** entry = environ; entry != nullptr && *entry != nullptr; ++entry) {
    if (!overrides(request, *entry)) launch.environment_text.emplace_back(*entry);
  }
  for (const auto& [name, value] : request.environment) launch.environment_text.push_back(name + "=" + value);
  for (std::string& text : launch.environment_text) launch.environment.push_back(text.data());
  launch.environment.push_back(nullptr);
}

void fill_descriptors(const SpawnRequest& request, int null_device, Launch& launch) {
  launch.descriptors.emplace_back(request.standard_input >= 0 ? request.standard_input : null_device, 0);
  if (request.standard_output >= 0) launch.descriptors.emplace_back(request.standard_output, 1);
  if (request.standard_error >= 0) launch.descriptors.emplace_back(request.standard_error, 2);
  launch.descriptors.insert(launch.descriptors.end(), request.inherited.begin(), request.inherited.end());
  for (const auto& [ours, theirs] : launch.descriptors) {
    launch.highest_target = std::max(launch.highest_target, theirs);
  }
  launch.staged.resize(launch.descriptors.size(), -1);
}

/// Two passes, so that no target number overwrites a source that is still needed.
bool place_descriptors(Launch& launch) {
  for (std::size_t i = 0; i < launch.descriptors.size(); ++i) {
    launch.staged[i] = ::fcntl(launch.descriptors[i].first, F_DUPFD_CLOEXEC, launch.highest_target + 1);
    if (launch.staged[i] < 0) return false;
  }
  for (std::size_t i = 0; i < launch.descriptors.size(); ++i) {
    if (::dup2(launch.staged[i], launch.descriptors[i].second) < 0) return false;
  }
  return true;
}

/// The child must not inherit our blocked signals, nor an ignored SIGPIPE.
void reset_signals() {
  sigset_t none;
  sigemptyset(&none);
  ::sigprocmask(SIG_SETMASK, &none, nullptr);
  ::signal(SIGPIPE, SIG_DFL);
}

[[noreturn]] void report_and_exit(int report, int error) {
  [[maybe_unused]] const ssize_t size = ::write(report, &error, sizeof(error));
  ::_exit(exit_when_not_started);
}

/// Runs in the child: system calls only.
[[noreturn]] void become(Launch& launch, int report) {
  if (launch.die_with_parent && ::prctl(PR_SET_PDEATHSIG, SIGKILL) != 0) report_and_exit(report, errno);
  if (launch.die_with_parent && ::getppid() != launch.parent) report_and_exit(report, ESRCH);
  if (launch.new_session && ::setsid() < 0) report_and_exit(report, errno);
  reset_signals();
  // Descriptors that a library of ours left open must not reach a tenant.
  ::syscall(SYS_close_range, 3U, ~0U, close_range_cloexec);
  const int safe_report = ::fcntl(report, F_DUPFD_CLOEXEC, launch.highest_target + 1);
  if (safe_report < 0) report_and_exit(report, errno);
  if (!place_descriptors(launch)) report_and_exit(safe_report, errno);
  // Not before: what is inherited may have higher numbers.
  if (launch.descriptors_max && ::setrlimit(RLIMIT_NOFILE, &*launch.descriptors_max) != 0)
    report_and_exit(safe_report, errno);
  ::execve(launch.program.c_str(), launch.arguments.data(), launch.environment.data());
  report_and_exit(safe_report, errno);
}

/// Waits until the child runs its program (the pipe closes) or says why it could not.
Result<pid_t> confirm(pid_t child, const Fd& report, const std::string& program) {
  int error = 0;
  ssize_t size = -1;
  do {
    size = ::read(report.get(), &error, sizeof(error));
  } while (size < 0 && errno == EINTR);
  if (size == 0) return child;
  while (::waitpid(child, nullptr, 0) < 0 && errno == EINTR) {
  }
  return fail_errno("start " + program, size == sizeof(error) ? error : EIO);
}

}  // namespace

Result<pid_t> spawn_process(const SpawnRequest& request) {
  if (request.command.empty()) return fail(ErrorCode::InvalidArgument, "no program to start");
  const std::optional<std::string> program = find_program(request.command.front());
  if (!program) return fail(ErrorCode::NotFound, "no program " + request.command.front());

  Launch launch;
  launch.program = *program;
  std::vector<std::string> arguments = request.command;
  for (std::string& argument : arguments) launch.arguments.push_back(argument.data());
  launch.arguments.push_back(nullptr);
  fill_environment(request, launch);
  Fd null_device(::open("/dev/null", O_RDWR | O_CLOEXEC));
  if (!null_device) return fail_errno("open /dev/null", errno);
  fill_descriptors(request, null_device.get(), launch);
  launch.new_session = request.new_session;
  launch.die_with_parent = request.die_with_parent;
  launch.parent = ::getpid();
  if (const auto limit = descriptor_limit_of_children())
    launch.descriptors_max = rlimit{limit->soft, limit->hard};

  std::array<int, 2> ends{};
  if (::pipe2(ends.data(), O_CLOEXEC) != 0) return fail_errno("make a pipe", errno);
  Fd report_read(ends[0]);
  Fd report_write(ends[1]);
  const pid_t child = ::fork();
  if (child < 0) return fail_errno("fork", errno);
  if (child == 0) become(launch, report_write.get());
  report_write.reset();
  return confirm(child, report_read, launch.program);
}

}  // namespace firebreak::os
