// SPDX-License-Identifier: Apache-2.0
#include "os/file_watch.h"

#include <sys/inotify.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <climits>
#include <cstring>

#include "os/errno_error.h"

namespace firebreak::os {
namespace {

Result<Fd> watch(const std::string& path, std::uint32_t events) {
  Fd fd(::inotify_init1(IN_CLOEXEC | IN_NONBLOCK));
  if (!fd) return fail_errno("watch " + path, errno);
  if (::inotify_add_watch(fd.get(), path.c_str(), events) < 0) return fail_errno("watch " + path, errno);
  return fd;
}

}  // namespace

Result<FileWatch> FileWatch::of(const std::string& directory, const std::string& name) {
  auto fd = watch(directory, IN_MODIFY | IN_CREATE | IN_MOVED_TO);
  if (!fd) return propagate(fd);
  return FileWatch(std::move(*fd), name);
}

Result<FileWatch> FileWatch::of(const Fd& file) {
  auto fd = watch("/proc/self/fd/" + std::to_string(file.get()), IN_MODIFY);
  if (!fd) return propagate(fd);
  return FileWatch(std::move(*fd), {});
}

FileWatch::Changes FileWatch::read() {
  Changes changes;
  alignas(inotify_event) std::array<char, 16 * (sizeof(inotify_event) + NAME_MAX + 1)> buffer;
  while (true) {
    const ssize_t size = ::read(fd_.get(), buffer.data(), buffer.size());
    if (size <= 0) return changes;
    for (ssize_t at = 0; at < size;) {
      inotify_event event;
      std::memcpy(&event, buffer.data() + at, sizeof(event));
      const char* name = buffer.data() + at + sizeof(event);
      // Where events were lost, the file may have been written as well.
      if ((event.mask & IN_Q_OVERFLOW) != 0) changes.written = true;
      if (name_.empty() && (event.mask & IN_MODIFY) != 0) changes.written = true;
      if (event.len > 0 && name_ == name) {
        changes.written = true;
        changes.replaced |= (event.mask & (IN_CREATE | IN_MOVED_TO)) != 0;
      }
      at += static_cast<ssize_t>(sizeof(event) + event.len);
    }
  }
}

}  // namespace firebreak::os
