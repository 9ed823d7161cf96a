// SPDX-License-Identifier: Apache-2.0
/// From errno to the project's errors, the same way everywhere.
#pragma once

#include <string>

#include "base/result.h"

namespace firebreak::os {

/// EACCES and EPERM become PermissionDenied, ENOENT and ESRCH NotFound, ENOSPC, ENOMEM, EMFILE and ENFILE
/// ResourceExhausted, EAGAIN Unavailable, EPIPE Protocol, ETIMEDOUT Timeout, the rest Internal.
ErrorCode code_of_errno(int number);

/// "DOING: the errno's text".
tl::unexpected<Error> fail_errno(const std::string& doing, int number);

}  // namespace firebreak::os
