// SPDX-License-Identifier: Apache-2.0
#include "os/file_lock.h"

#include <fcntl.h>
#include <sys/file.h>
#include <unistd.h>

#include <array>
#include <cctype>
#include <cerrno>

#include "os/errno_error.h"
#include "os/self.h"

namespace firebreak::os {
namespace {

/// The number that the holder wrote; it may be about to.
std::string holder_of(const Fd& fd) {
  std::array<char, 16> text{};
  const ssize_t size = ::pread(fd.get(), text.data(), text.size(), 0);
  std::string pid;
  for (ssize_t at = 0; at < size && std::isdigit(static_cast<unsigned char>(text.at(std::size_t(at)))) != 0;
       ++at) {
    pid += text.at(std::size_t(at));
  }
  return pid.empty() ? "another process" : "process " + pid;
}

}  // namespace

Result<FileLock> FileLock::take(const std::string& path) {
  Fd fd(::open(path.c_str(), O_RDWR | O_CREAT | O_CLOEXEC, 0600));
  if (!fd) return fail_errno("open " + path, errno);
  if (::flock(fd.get(), LOCK_EX | LOCK_NB) != 0) {
    if (errno != EWOULDBLOCK) return fail_errno("lock " + path, errno);
    return fail(ErrorCode::Unavailable, holder_of(fd) + " holds " + path);
  }
  const std::string pid = std::to_string(own_pid()) + "\n";
  if (::ftruncate(fd.get(), 0) != 0 || ::pwrite(fd.get(), pid.data(), pid.size(), 0) < 0) {
    return fail_errno("write " + path, errno);
  }
  return FileLock(std::move(fd));
}

}  // namespace firebreak::os
