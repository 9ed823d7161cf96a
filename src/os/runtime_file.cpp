// SPDX-License-Identifier: Apache-2.0
#include "os/runtime_file.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <cstdio>

#include "os/errno_error.h"
#include "os/fd.h"
#include "os/self.h"
#include "os/temporary_directory.h"

namespace firebreak::os {
namespace {

constexpr std::size_t size_max = 65536;

/// Who else could have written what is behind the descriptor: nobody, or PermissionDenied.
Status check_ours(const Fd& fd, mode_t type, const std::string& path) {
  struct stat info {};
  if (::fstat(fd.get(), &info) != 0) return fail_errno("look at " + path, errno);
  const bool owned = info.st_uid == ::geteuid() || info.st_uid == 0;
  const bool closed = (info.st_mode & (S_IWGRP | S_IWOTH)) == 0;
  if (owned && closed && (info.st_mode & S_IFMT) == type) return {};
  return fail(ErrorCode::PermissionDenied, path + " is not of our making", "remove it");
}

Result<Fd> open_ours(int folder, const std::string& path, int flags, mode_t type) {
  Fd fd(::openat(folder, path.c_str(), flags | O_NOFOLLOW | O_CLOEXEC | O_NONBLOCK));
  if (!fd && errno == ELOOP) return fail(ErrorCode::PermissionDenied, path + " is a link", "remove it");
  if (!fd) return fail_errno("open " + path, errno);
  if (const Status ours = check_ours(fd, type, path); !ours) return propagate(ours);
  return fd;
}

Result<Fd> open_folder(const std::string& folder) {
  return open_ours(AT_FDCWD, folder, O_RDONLY | O_DIRECTORY, S_IFDIR);
}

Status write_all(const Fd& fd, std::string_view content) {
  while (!content.empty()) {
    const ssize_t written = ::write(fd.get(), content.data(), content.size());
    if (written < 0 && errno == EINTR) continue;
    if (written < 0) return fail_errno("write", errno);
    content.remove_prefix(static_cast<std::size_t>(written));
  }
  return {};
}

}  // namespace

std::string runtime_folder() {
  const auto given = environment_variable("XDG_RUNTIME_DIR");
  if (given && given->starts_with('/')) return *given + "/firebreak";
  const uid_t user = ::geteuid();
  return user == 0 ? "/run/firebreak" : "/tmp/firebreak-" + std::to_string(user);
}

Result<std::string> read_runtime_file(const std::string& folder, const std::string& name) {
  const auto opened = open_folder(folder);
  if (!opened) return propagate(opened);
  const auto file = open_ours(opened->get(), name, O_RDONLY, S_IFREG);
  if (!file) return propagate(file, folder);
  std::string content;
  std::array<char, 4096> buffer;
  while (content.size() < size_max) {
    const ssize_t got = ::read(file->get(), buffer.data(), buffer.size());
    if (got < 0 && errno == EINTR) continue;
    if (got < 0) return fail_errno("read " + folder + "/" + name, errno);
    if (got == 0) break;
    content.append(buffer.data(), static_cast<std::size_t>(got));
  }
  return content;
}

Status replace_runtime_file(const std::string& folder, const std::string& name, const std::string& content) {
  if (const Status made = make_directories(folder); !made) return made;
  const auto opened = open_folder(folder);
  if (!opened) return propagate(opened);
  const std::string next = name + "." + std::to_string(own_pid());
  const Fd file(
      ::openat(opened->get(), next.c_str(), O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC, 0600));
  if (!file) return fail_errno("make " + folder + "/" + next, errno);
  Status written = write_all(file, content);
  if (written && ::renameat(opened->get(), next.c_str(), opened->get(), name.c_str()) != 0)
    written = fail_errno("replace " + folder + "/" + name, errno);
  if (!written) ::unlinkat(opened->get(), next.c_str(), 0);
  return written;
}

}  // namespace firebreak::os
