// SPDX-License-Identifier: Apache-2.0
#include "ground/os/fd.h"

#include <fcntl.h>
#include <unistd.h>
#include <cerrno>
#include <system_error>

#include "ground/os/closer.h"

namespace firebreak::os {

// --- fd

void Fd::reset() {
  const std::shared_ptr<Closer> closer = std::move(closer_);
  if (number_ < 0) return;
  const int number = std::exchange(number_, -1);
  if (closer) return closer->close(Fd(number));
  ::close(number);
}

// --- duplicate

Result<Fd> duplicate(int descriptor) {
  Fd copy(::fcntl(descriptor, F_DUPFD_CLOEXEC, 0));
  if (!copy) return fail_errno("duplicate a descriptor", errno);
  return copy;
}

// --- errno error

ErrorCode code_of_errno(int number) {
  switch (number) {
    case EACCES:
    case EPERM:
      return ErrorCode::PermissionDenied;
    case ENOENT:
    case ESRCH:
      return ErrorCode::NotFound;
    case ENOSPC:
    case EDQUOT:
    case ENOMEM:
    case EMFILE:
    case ENFILE:
      return ErrorCode::ResourceExhausted;
    case EAGAIN:
      return ErrorCode::Unavailable;
    case EPIPE:
      return ErrorCode::Protocol;
    case ETIMEDOUT:
      return ErrorCode::Timeout;
    default:
      return ErrorCode::Internal;
  }
}

namespace {

/// What to do about it, where that is the same whatever was done.
const char* hint_of_errno(int number) {
  switch (number) {
    case ENOSPC:
      return "free space on that file system, or name a folder on another one";
    case EDQUOT:
      return "this user's quota there is used up: free space, or name a folder on another file system";
    case EROFS:
      return "name a folder on a file system that is not mounted read-only";
    default:
      return "";
  }
}

}  // namespace

tl::unexpected<Error> fail_errno(const std::string& doing, int number) {
  return fail(code_of_errno(number), doing + ": " + std::generic_category().message(number),
              hint_of_errno(number));
}

}  // namespace firebreak::os
