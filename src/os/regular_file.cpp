// SPDX-License-Identifier: Apache-2.0
#include "os/regular_file.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>

#include "os/errno_error.h"

namespace firebreak::os {
namespace {

Result<FileIdentity> identity_of(int fd, const std::string& path) {
  struct stat info {};
  if (::fstat(fd, &info) != 0) return fail_errno("look at " + path, errno);
  if (!S_ISREG(info.st_mode)) return fail(ErrorCode::Unsupported, path + " is no regular file");
  return FileIdentity{info.st_dev, info.st_ino};
}

}  // namespace

Result<FileIdentity> regular_file_at(Kernel& kernel, const std::string& path) {
  // Opened for nothing but to be asked what it is: that wakes no writer of a pipe and no terminal.
  const Result<Fd> found = kernel.open(path, O_PATH);
  if (!found) return propagate(found);
  return identity_of(found->get(), path);
}

Result<Fd> open_regular_file(Kernel& kernel, const std::string& path) {
  const Result<Fd> found = kernel.open(path, O_PATH);
  if (!found) return propagate(found);
  if (const auto identity = identity_of(found->get(), path); !identity) return propagate(identity);
  // The very file that was looked at, even if the path leads to another by now.
  return kernel.open("/proc/self/fd/" + std::to_string(found->get()), O_RDONLY | O_NONBLOCK | O_NOCTTY);
}

Result<std::size_t> go_to_end(int fd) {
  const off_t place = ::lseek(fd, 0, SEEK_END);
  if (place < 0) return fail_errno("go to a file's end", errno);
  return static_cast<std::size_t>(place);
}

Status go_to_beginning(int fd) {
  return ::lseek(fd, 0, SEEK_SET) == 0 ? Status{} : fail_errno("go to a file's beginning", errno);
}

}  // namespace firebreak::os
