// SPDX-License-Identifier: Apache-2.0
#include "os/errno_error.h"

#include <cerrno>
#include <system_error>

namespace firebreak::os {

ErrorCode code_of_errno(int number) {
  switch (number) {
    case EACCES:
    case EPERM:
      return ErrorCode::PermissionDenied;
    case ENOENT:
    case ESRCH:
      return ErrorCode::NotFound;
    case ENOSPC:
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

tl::unexpected<Error> fail_errno(const std::string& doing, int number) {
  return fail(code_of_errno(number), doing + ": " + std::generic_category().message(number));
}

}  // namespace firebreak::os
