// SPDX-License-Identifier: Apache-2.0
#include "ground/os/command_file.h"

#include <fcntl.h>
#include <unistd.h>

#include <cerrno>

namespace firebreak::os {

Status write_command(Kernel& kernel, const std::string& path, std::string_view text) {
  const Result<Fd> fd = kernel.open(path, O_WRONLY);
  if (!fd) return propagate(fd);
  ssize_t size = -1;
  do {
    size = ::write(fd->get(), text.data(), text.size());
  } while (size < 0 && errno == EINTR);
  if (size < 0) return fail_errno("write to " + path, errno);
  if (static_cast<std::size_t>(size) == text.size()) return {};
  return fail(ErrorCode::Internal, path + " took only a part of what was written");
}

}  // namespace firebreak::os
