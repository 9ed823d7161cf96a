// SPDX-License-Identifier: Apache-2.0
#include "os/duplicate.h"

#include <fcntl.h>

#include <cerrno>

#include "os/errno_error.h"

namespace firebreak::os {

Result<Fd> duplicate(int descriptor) {
  Fd copy(::fcntl(descriptor, F_DUPFD_CLOEXEC, 0));
  if (!copy) return fail_errno("duplicate a descriptor", errno);
  return copy;
}

}  // namespace firebreak::os
