// SPDX-License-Identifier: Apache-2.0
#include "os/file_identity.h"

#include <sys/stat.h>

#include <cerrno>

#include "os/errno_error.h"

namespace firebreak::os {

Result<FileIdentity> identity_of(int fd) {
  struct stat info {};
  if (::fstat(fd, &info) != 0) return fail_errno("ask which file a descriptor is", errno);
  return FileIdentity{info.st_dev, info.st_ino};
}

}  // namespace firebreak::os
