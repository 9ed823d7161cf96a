// SPDX-License-Identifier: Apache-2.0
#include "ground/os/real_kernel.h"

#include <dirent.h>
#include <fcntl.h>
#include <sched.h>
#include <sys/ioctl.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>
#include <algorithm>
#include <array>
#include <cerrno>
#include <climits>
#include <csignal>
#include <memory>
#include <string_view>

#include "ground/base/units.h"
#include "ground/os/descriptors.h"
#include "ground/os/event_loop.h"
#include "ground/os/fd.h"
#include "ground/os/file.h"
#include "ground/os/self.h"

namespace firebreak::os {

// --- real kernel

namespace {

ExitStatus from_wait(int status) {
  ExitStatus result;
  if (WIFSIGNALED(status)) {
    result.signal = WTERMSIG(status);
  } else {
    result.exit_code = WEXITSTATUS(status);
  }
  return result;
}

// The call goes by number, because the C library's header for these does not link from C++ in the oldest
// supported release.
int call_pidfd_open(pid_t pid) { return static_cast<int>(::syscall(SYS_pidfd_open, pid, 0U)); }
long call_pidfd_send_signal(int pidfd, int signal) {
  return ::syscall(SYS_pidfd_send_signal, pidfd, signal, nullptr, 0U);
}

}  // namespace

Result<Fd> RealKernel::open(const std::string& path, int flags) {
  const bool is_to_be_found = (flags & O_PATH) != 0 && (flags & O_DIRECTORY) == 0;
  if (is_to_be_found && may_have_to_wait(path)) return looks_->find(path);
  int number = -1;
  do {
    number = ::open(path.c_str(), flags | O_CLOEXEC, 0600);
  } while (number < 0 && errno == EINTR);
  if (number < 0 && errno == EACCES && root_files_ && path.starts_with(driver_folder))
    return root_files_->open_driver_file(path.substr(driver_folder.size()));
  if (number < 0) return fail_errno("open " + path, errno);
  return Fd(number);
}

Result<std::size_t> RealKernel::read(const Fd& fd, std::span<std::byte> into) {
  ssize_t size = -1;
  do {
    size = ::read(fd.get(), into.data(), into.size());
  } while (size < 0 && errno == EINTR);
  if (size < 0) return fail_errno("read", errno);
  return static_cast<std::size_t>(size);
}

Result<std::string> RealKernel::read_link(const std::string& path) {
  std::string target(PATH_MAX, '\0');
  const ssize_t length = ::readlink(path.c_str(), target.data(), target.size());
  if (length < 0) return fail_errno("read the link " + path, errno);
  target.resize(static_cast<std::size_t>(length));
  return target;
}

namespace {

/// Linux before 6.2 does not say how many there are but by their names.
Result<std::vector<std::string>> names_of_descriptors(Looks& looks, const std::string& path) {
  std::vector<std::string> names;
  int from = 0;
  do {
    const auto links = looks.read_links(path, from);
    if (!links) return propagate(links);
    for (const DescriptorLink& link : links->all) names.push_back(std::to_string(link.number));
    from = links->next;
  } while (from != 0);
  return names;
}

}  // namespace

Result<std::vector<std::string>> RealKernel::list_directory(const std::string& path) {
  const std::unique_ptr<DIR, int (*)(DIR*)> directory(::opendir(path.c_str()), ::closedir);
  if (!directory && errno == EACCES && may_have_to_wait(path) && path.ends_with("/fd"))
    return names_of_descriptors(*looks_, path);
  if (!directory) return fail_errno("list " + path, errno);
  std::vector<std::string> names;
  while (true) {
    errno = 0;
    const dirent* entry = ::readdir(directory.get());
    if (entry == nullptr) break;
    const std::string name = entry->d_name;
    if (name != "." && name != "..") names.push_back(name);
  }
  if (errno != 0) return fail_errno("list " + path, errno);
  return names;
}

Result<std::string> RealKernel::read_file(const std::string& path) {
  if (may_have_to_wait(path)) return looks_->read_file(path);
  auto text = read_small_file(path);
  const bool is_roots = !text && root_files_ && text.error().code == ErrorCode::PermissionDenied;
  if (!is_roots || !path.starts_with(driver_folder)) return text;
  const auto opened = open(path, O_RDONLY);
  return opened ? read_to_end(*opened, path) : propagate(opened);
}

Status RealKernel::ioctl(const Fd& fd, unsigned long request, void* argument) {
  int result = -1;
  do {
    result = ::ioctl(fd.get(), request, argument);
  } while (result < 0 && errno == EINTR);
  if (result < 0) return fail_errno("ioctl " + std::to_string(request), errno);
  return {};
}

Status RealKernel::give_file(const Fd& file, uid_t user) {
  return root_files_ ? root_files_->give_file(file, user) : Kernel::give_file(file, user);
}

Status RealKernel::mark_fifo(const Fd& fifo, bool is_marked) {
  return root_files_ ? root_files_->mark_fifo(fifo, is_marked) : Kernel::mark_fifo(fifo, is_marked);
}

Result<KernelLogBell> RealKernel::kernel_log_bell() {
  if (!bell_) return KernelLogBell::open();
  Result<KernelLogBell> bell = std::move(*bell_);
  bell_.reset();
  return bell;
}

Result<pid_t> RealKernel::spawn(const SpawnRequest& request) { return spawn_process(request); }

Result<Fd> RealKernel::pidfd_open(pid_t pid) {
  Fd fd(call_pidfd_open(pid));
  if (!fd) return fail_errno("open process " + std::to_string(pid), errno);
  return fd;
}

Result<bool> RealKernel::is_same_file(pid_t pid, int remote_number, const Fd& fd) {
  return looks_->is_same_file(pid, remote_number, ::getpid(), fd.get());
}

std::vector<Result<bool>> RealKernel::are_same_files(pid_t pid, std::span<const FilePair> files) {
  std::vector<NumberPair> numbers;
  for (const FilePair& each : files) numbers.push_back({each.remote_number, each.own->get()});
  return looks_->are_same_files(pid, ::getpid(), numbers);
}

Status RealKernel::send_signal(const Fd& pidfd, int signal) {
  if (call_pidfd_send_signal(pidfd.get(), signal) != 0) {
    return fail_errno("send signal " + std::to_string(signal), errno);
  }
  return {};
}

Result<std::unique_ptr<Standstill>> RealKernel::stop_all_but_writers(pid_t pid, const Fd& pipe) {
  return looks_->stop_all_but_writers(pid, pipe);
}

Result<std::optional<ExitStatus>> RealKernel::try_wait(pid_t pid) {
  int status = 0;
  pid_t reaped = -1;
  do {
    reaped = ::waitpid(pid, &status, WNOHANG);
  } while (reaped < 0 && errno == EINTR);
  if (reaped == 0) return std::optional<ExitStatus>();
  if (reaped > 0) return std::optional(from_wait(status));
  if (errno == ECHILD)
    return fail(ErrorCode::NotFound, "process " + std::to_string(pid) + " is no child of ours");
  return fail_errno("wait for process " + std::to_string(pid), errno);
}

Result<std::vector<std::size_t>> RealKernel::poll(std::span<const int> fds,
                                                  std::chrono::milliseconds timeout) {
  return poll_readable(fds, timeout);
}

// --- spawn

namespace {

constexpr unsigned close_range_cloexec = 1U << 2;
constexpr int exit_when_not_started = 127;

/// Everything that the child needs, made before it begins: until its exec it may not allocate.
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

/// The child must not inherit our blocked signals, nor an ignored SIGPIPE. Until its exec it may be in our
/// memory, so no handler of ours may run in it.
void reset_signals() {
  for (int signal = 1; signal < NSIG; ++signal) {
    struct sigaction action {};
    if (::sigaction(signal, nullptr, &action) != 0 || action.sa_handler == SIG_IGN) continue;
    if (action.sa_handler != SIG_DFL) ::signal(signal, SIG_DFL);
  }
  sigset_t none;
  sigemptyset(&none);
  ::sigprocmask(SIG_SETMASK, &none, nullptr);
  ::signal(SIGPIPE, SIG_DFL);
}

[[noreturn]] void report_and_exit(int report, int error) {
  [[maybe_unused]] const ssize_t size = ::write(report, &error, sizeof(error));
  ::_exit(exit_when_not_started);
}

/// Nobody is left who could say so: nothing begins.
void await_word(int gate) {
  char word = 0;
  ssize_t size = -1;
  do {
    size = ::read(gate, &word, sizeof(word));
  } while (size < 0 && errno == EINTR);
  if (size != sizeof(word)) ::_exit(exit_when_not_started);
}

/// Runs in the child: system calls only. It waits at the gate, if there is one.
[[noreturn]] void become(Launch& launch, int report, int gate) {
  if (launch.die_with_parent && ::prctl(PR_SET_PDEATHSIG, SIGKILL) != 0) report_and_exit(report, errno);
  if (launch.die_with_parent && ::getppid() != launch.parent) report_and_exit(report, ESRCH);
  if (launch.new_session && ::setsid() < 0) report_and_exit(report, errno);
  reset_signals();
  // Descriptors that a library of ours left open must not reach a tenant.
  ::syscall(SYS_close_range, 3U, ~0U, close_range_cloexec);
  const int safe_report = ::fcntl(report, F_DUPFD_CLOEXEC, launch.highest_target + 1);
  if (safe_report < 0) report_and_exit(report, errno);
  const int safe_gate = gate < 0 ? -1 : ::fcntl(gate, F_DUPFD_CLOEXEC, launch.highest_target + 1);
  if (gate >= 0 && safe_gate < 0) report_and_exit(report, errno);
  if (!place_descriptors(launch)) report_and_exit(safe_report, errno);
  // The limit comes last: inherited descriptors may have higher numbers.
  if (launch.descriptors_max && ::setrlimit(RLIMIT_NOFILE, &*launch.descriptors_max) != 0)
    report_and_exit(safe_report, errno);
  if (gate >= 0) await_word(safe_gate);
  ::execve(launch.program.c_str(), launch.arguments.data(), launch.environment.data());
  report_and_exit(safe_report, errno);
}

struct Gate {
  Fd child;
  Fd parent;
};

/// Blocks all signals of the calling thread.
class AllSignalsBlocked {
 public:
  AllSignalsBlocked() {
    sigset_t all;
    sigfillset(&all);
    ::pthread_sigmask(SIG_SETMASK, &all, &before_);
  }
  AllSignalsBlocked(const AllSignalsBlocked&) = delete;
  AllSignalsBlocked& operator=(const AllSignalsBlocked&) = delete;
  ~AllSignalsBlocked() { ::pthread_sigmask(SIG_SETMASK, &before_, nullptr); }

 private:
  sigset_t before_{};
};

/// A child in our memory until its exec, for which the calling thread waits. fork() copies the page tables:
/// meanwhile no other thread gets a page that it lacks, and afterwards each that is written is one that it
/// lacks. An agent's loop stood still for 0.4 to 0.8 ms so when it asked MPS for its servers, between the
/// first words on a fault and the one that decides.
pid_t start_in_our_memory(Launch& launch, int report) {
  constexpr std::size_t stack_bytes = 64 * 1024;
  struct Child {
    Launch& launch;
    int report;
  } child{launch, report};
  const auto stack = std::make_unique_for_overwrite<std::byte[]>(stack_bytes);
  const AllSignalsBlocked blocked;
  return ::clone(
      [](void* argument) -> int {
        const auto& ours = *static_cast<Child*>(argument);
        become(ours.launch, ours.report, -1);
      },
      stack.get() + stack_bytes, CLONE_VM | CLONE_VFORK | SIGCHLD, &child);
}

/// One that waits at the gate needs memory of its own: we go on meanwhile.
pid_t start_at_gate(Launch& launch, int report, Gate& gate) {
  const pid_t child = ::fork();
  if (child != 0) return child;
  gate.parent.reset();
  become(launch, report, gate.child.get());
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

/// `gate`: without one the program runs at once.
Result<HeldStart> start(const SpawnRequest& request, Gate gate) {
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

  auto report = make_pipe();
  if (!report) return propagate(report);
  Fd report_read = std::move(report->reading);
  const Fd report_write = std::move(report->writing);
  const pid_t child = gate.child ? start_at_gate(launch, report_write.get(), gate)
                                 : start_in_our_memory(launch, report_write.get());
  if (child < 0) return fail_errno("start a process", errno);
  return HeldStart{child, std::move(gate.parent), std::move(report_read), std::move(launch.program)};
}

bool has_ended(pid_t child) {
  siginfo_t end{};
  return ::waitid(P_PID, static_cast<id_t>(child), &end, WEXITED | WNOHANG | WNOWAIT) != 0 || end.si_pid != 0;
}

/// Linux says that the new program runs a little before that has its environment: whoever looked at it at
/// once would take it for one without.
void await_environment(pid_t child) {
  constexpr int most_looks = 500;
  const std::string path = "/proc/" + std::to_string(child) + "/environ";
  for (int looks = 0; looks < most_looks && !has_ended(child); ++looks) {
    const Fd file(::open(path.c_str(), O_RDONLY | O_CLOEXEC));
    char letter = 0;
    if (!file || ::read(file.get(), &letter, 1) != 0) return;
    ::usleep(20);
  }
}

}  // namespace

Result<pid_t> spawn_process(const SpawnRequest& request) {
  const auto started = start(request, {});
  if (!started) return propagate(started);
  auto confirmed = confirm(started->pid, started->report, started->program);
  if (confirmed) await_environment(*confirmed);
  return confirmed;
}

Result<HeldStart> spawn_held(const SpawnRequest& request) {
  std::array<int, 2> ends{};
  if (::socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, ends.data()) != 0)
    return fail_errno("make a gate", errno);
  return start(request, {Fd(ends[0]), Fd(ends[1])});
}

Status let_begin(HeldStart held) {
  const char word = 1;
  ssize_t size = -1;
  do {
    size = ::send(held.gate.get(), &word, sizeof(word), MSG_NOSIGNAL);
  } while (size < 0 && errno == EINTR);
  const auto confirmed = confirm(held.pid, held.report, held.program);
  return confirmed ? Status{} : propagate(confirmed);
}

}  // namespace firebreak::os
