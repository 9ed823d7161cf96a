// SPDX-License-Identifier: Apache-2.0
#include "os/opening_mark.h"

#include <fcntl.h>

#include <cerrno>
#include <random>

#include "os/errno_error.h"

namespace firebreak::os {
namespace {

/// Other agents mark openings of the same device: a byte that is taken is refused, and another one tried.
constexpr int tries = 8;

/// Bytes that no file has.
constexpr std::uint64_t first_byte = std::uint64_t{1} << 48;
constexpr std::uint64_t last_byte = (std::uint64_t{1} << 62) - 1;

struct flock lock_of(OpeningMark mark) {
  struct flock lock {};
  lock.l_type = F_WRLCK;
  lock.l_whence = SEEK_SET;
  lock.l_start = static_cast<off_t>(mark);
  lock.l_len = 1;
  return lock;
}

}  // namespace

Result<OpeningMark> mark_opening(int fd) {
  std::random_device device;
  std::uniform_int_distribution<std::uint64_t> bytes(first_byte, last_byte);
  for (int i = 0; i < tries; ++i) {
    const OpeningMark mark = bytes(device);
    struct flock lock = lock_of(mark);
    if (::fcntl(fd, F_OFD_SETLK, &lock) == 0) return mark;
    if (errno == EBADF) return fail(ErrorCode::PermissionDenied, "a descriptor is not for writing");
    if (errno != EAGAIN && errno != EACCES) return fail_errno("mark an opening of a file", errno);
  }
  return fail(ErrorCode::Unavailable, "no byte of a file is free to mark an opening");
}

Result<bool> is_marked(int fd, OpeningMark mark) {
  struct flock lock = lock_of(mark);
  if (::fcntl(fd, F_OFD_GETLK, &lock) != 0) return fail_errno("ask for a file's lock", errno);
  return lock.l_type != F_UNLCK;
}

}  // namespace firebreak::os
