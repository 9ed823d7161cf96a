// SPDX-License-Identifier: Apache-2.0
#include "os/real_kernel.h"

#include <dirent.h>
#include <fcntl.h>
#include <linux/kcmp.h>
#include <sys/ioctl.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <climits>
#include <memory>

#include "base/units.h"
#include "os/errno_error.h"
#include "os/spawn.h"
#include "os/wait.h"

namespace firebreak::os {
namespace {

/// What read_file() is for is far smaller; a file that never ends must not eat the memory.
constexpr std::size_t largest_small_file = 16 * mib;

ExitStatus from_wait(int status) {
  ExitStatus result;
  if (WIFSIGNALED(status)) {
    result.signal = WTERMSIG(status);
  } else {
    result.exit_code = WEXITSTATUS(status);
  }
  return result;
}

// By number, because the C library's header for these does not link from C++ in the oldest supported release.
int call_pidfd_open(pid_t pid) { return static_cast<int>(::syscall(SYS_pidfd_open, pid, 0U)); }
int call_pidfd_getfd(int pidfd, int number) {
  return static_cast<int>(::syscall(SYS_pidfd_getfd, pidfd, number, 0U));
}
long call_pidfd_send_signal(int pidfd, int signal) {
  return ::syscall(SYS_pidfd_send_signal, pidfd, signal, nullptr, 0U);
}

}  // namespace

Result<Fd> RealKernel::open(const std::string& path, int flags) {
  int number = -1;
  do {
    number = ::open(path.c_str(), flags | O_CLOEXEC, 0600);
  } while (number < 0 && errno == EINTR);
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

Result<std::vector<std::string>> RealKernel::list_directory(const std::string& path) {
  const std::unique_ptr<DIR, int (*)(DIR*)> directory(::opendir(path.c_str()), ::closedir);
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
  Result<Fd> fd = open(path, O_RDONLY);
  if (!fd) return propagate(fd);
  std::string text;
  std::array<std::byte, 4096> buffer{};
  while (text.size() < largest_small_file) {
    const Result<std::size_t> size = read(*fd, buffer);
    if (!size) return propagate(size, path);
    if (*size == 0) return text;
    text.append(reinterpret_cast<const char*>(buffer.data()), *size);
  }
  return fail(ErrorCode::Protocol, path + " is larger than expected");
}

Status RealKernel::ioctl(const Fd& fd, unsigned long request, void* argument) {
  int result = -1;
  do {
    result = ::ioctl(fd.get(), request, argument);
  } while (result < 0 && errno == EINTR);
  if (result < 0) return fail_errno("ioctl " + std::to_string(request), errno);
  return {};
}

Result<pid_t> RealKernel::spawn(const SpawnRequest& request) { return spawn_process(request); }

Result<Fd> RealKernel::pidfd_open(pid_t pid) {
  Fd fd(call_pidfd_open(pid));
  if (!fd) return fail_errno("open process " + std::to_string(pid), errno);
  return fd;
}

Result<Fd> RealKernel::pidfd_getfd(const Fd& pidfd, int remote_number) {
  Fd fd(call_pidfd_getfd(pidfd.get(), remote_number));
  if (!fd)
    return fail_errno("duplicate descriptor " + std::to_string(remote_number) + " of a process", errno);
  return fd;
}

Result<bool> RealKernel::is_same_file(pid_t pid, int remote_number, const Fd& fd) {
  const long order = ::syscall(SYS_kcmp, ::getpid(), pid, KCMP_FILE, fd.get(), remote_number);
  if (order < 0) return fail_errno("compare descriptors", errno);
  return order == 0;
}

Status RealKernel::send_signal(const Fd& pidfd, int signal) {
  if (call_pidfd_send_signal(pidfd.get(), signal) != 0) {
    return fail_errno("send signal " + std::to_string(signal), errno);
  }
  return {};
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

}  // namespace firebreak::os
