// SPDX-License-Identifier: Apache-2.0
#include "os/looks.h"

#include <fcntl.h>
#include <linux/kcmp.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <charconv>
#include <string_view>

#include "base/units.h"
#include "os/descriptors.h"
#include "os/fd.h"

namespace firebreak::os {
namespace {

/// What is read so is far smaller; a file that never ends must not eat the memory.
constexpr std::size_t largest_small_file = 16 * mib;
constexpr std::size_t most_memory_bytes = 4096;

Result<Fd> open_to_read(const std::string& path) {
  int number = -1;
  do {
    number = ::open(path.c_str(), O_RDONLY | O_CLOEXEC);
  } while (number < 0 && errno == EINTR);
  if (number < 0) return fail_errno("open " + path, errno);
  return Fd(number);
}

class DirectLooks final : public Looks {
 public:
  Result<std::string> read_file(const std::string& path) override { return read_small_file(path); }

  Result<std::string> read_memory(const std::string& path, std::uint64_t address,
                                  std::size_t size_bytes) override {
    const auto memory = open_to_read(path);
    if (!memory) return propagate(memory);
    std::string bytes(std::min(size_bytes, most_memory_bytes), '\0');
    const ssize_t got = ::pread(memory->get(), bytes.data(), bytes.size(), static_cast<off_t>(address));
    if (got < 0) return fail_errno("read " + path, errno);
    bytes.resize(static_cast<std::size_t>(got));
    return bytes;
  }

  Result<Fd> duplicate(const Fd& pidfd, int number, const std::string& link) override {
    const std::string of_a_process = "duplicate descriptor " + std::to_string(number) + " of a process";
    // First: to close another file than these may take as long as its owner likes.
    if (const pid_t pid = process_behind(pidfd); pid != 0) {
      const auto path = "/proc/" + std::to_string(pid) + "/fd/" + std::to_string(number);
      if (const Status right = check_what_it_is_called(path, link); !right) return propagate(right);
    }
    // By number: the C library's header for it does not link from C++ in the oldest supported release.
    Fd fd(static_cast<int>(::syscall(SYS_pidfd_getfd, pidfd.get(), number, 0U)));
    if (!fd) return fail_errno(of_a_process, errno);
    // The number may be another file's by now.
    if (is_what_it_is_called(fd.get(), link)) return fd;
    return fail(ErrorCode::NotFound, of_a_process + ": it is no " + link);
  }

  Result<bool> is_same_file(pid_t pid, int number, pid_t other, int other_number) override {
    const long order = ::syscall(SYS_kcmp, other, pid, KCMP_FILE, other_number, number);
    if (order < 0) return fail_errno("compare descriptors", errno);
    return order == 0;
  }
};

}  // namespace

std::shared_ptr<Looks> direct_looks() { return std::make_shared<DirectLooks>(); }

Result<std::string> read_small_file(const std::string& path) {
  const auto fd = open_to_read(path);
  if (!fd) return propagate(fd);
  std::string text;
  std::array<char, 4096> buffer{};
  while (text.size() < largest_small_file) {
    const ssize_t size = ::read(fd->get(), buffer.data(), buffer.size());
    if (size < 0 && errno == EINTR) continue;
    if (size < 0) return fail_errno(path + ": read", errno);
    if (size == 0) return text;
    text.append(buffer.data(), static_cast<std::size_t>(size));
  }
  return fail(ErrorCode::Protocol, path + " is larger than expected");
}

pid_t process_behind(const Fd& pidfd) {
  constexpr std::string_view label = "\nPid:\t";
  const auto text = read_small_file("/proc/self/fdinfo/" + std::to_string(pidfd.get()));
  const std::size_t found = text ? text->find(label) : std::string::npos;
  if (found == std::string::npos) return 0;
  pid_t pid = 0;
  std::from_chars(text->data() + found + label.size(), text->data() + text->size(), pid);
  return std::max(pid, 0);
}

}  // namespace firebreak::os
