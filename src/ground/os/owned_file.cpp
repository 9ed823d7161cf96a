// SPDX-License-Identifier: Apache-2.0
#include "ground/os/owned_file.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <cstdio>

#include "ground/os/fd.h"
#include "ground/os/file.h"
#include "ground/os/self.h"

namespace firebreak::os {
namespace {

Status write_all(const Fd& fd, std::string_view content) {
  while (!content.empty()) {
    const ssize_t written = ::write(fd.get(), content.data(), content.size());
    if (written < 0 && errno == EINTR) continue;
    if (written < 0) return fail_errno("write", errno);
    content.remove_prefix(static_cast<std::size_t>(written));
  }
  return {};
}

Result<Fd> open_own_folder(const std::string& folder) {
  Fd opened(::open(folder.c_str(), O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC));
  if (!opened) return fail_errno("open " + folder, errno);
  struct stat info {};
  if (::fstat(opened.get(), &info) != 0) return fail_errno("look at " + folder, errno);
  if (info.st_uid != ::geteuid() || (info.st_mode & (S_IWGRP | S_IWOTH)) != 0)
    return fail(ErrorCode::PermissionDenied, folder + " is not ours, or others may write it");
  return opened;
}

}  // namespace

Status replace_owned_file(const std::string& folder, const std::string& name, std::string_view content,
                          uid_t owner, const std::function<Status(const Fd& file, uid_t user)>& give) {
  const auto opened = open_own_folder(folder);
  if (!opened) return propagate(opened);
  const std::string next = "." + name + "." + std::to_string(own_pid());
  (void)::unlinkat(opened->get(), next.c_str(), 0);  // left by a process that was killed in the middle
  const Fd file(
      ::openat(opened->get(), next.c_str(), O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC, 0600));
  if (!file) return fail_errno("make " + folder + "/" + next, errno);
  Status written = write_all(file, content);
  // Root reads what is ours.
  if (written && owner != ::geteuid() && owner != 0)
    written = give ? give(file, owner) : give_file(file, owner);
  if (written && ::renameat(opened->get(), next.c_str(), opened->get(), name.c_str()) != 0)
    written = fail_errno("replace " + folder + "/" + name, errno);
  if (!written) (void)::unlinkat(opened->get(), next.c_str(), 0);
  return written;
}

}  // namespace firebreak::os
