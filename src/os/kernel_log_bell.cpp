// SPDX-License-Identifier: Apache-2.0
#include "os/kernel_log_bell.h"

#include <fcntl.h>
#include <linux/mount.h>
#include <linux/perf_event.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <charconv>

#include "os/errno_error.h"

namespace firebreak::os {
namespace {

constexpr const char* doing = "listen to the kernel's printk trace point";

Result<std::uint64_t> read_number(const Fd& file) {
  std::array<char, 32> text{};
  const ssize_t size = ::read(file.get(), text.data(), text.size());
  if (size < 0) return fail_errno(doing, errno);
  std::uint64_t number = 0;
  if (std::from_chars(text.data(), text.data() + size, number).ec != std::errc{}) {
    return fail(ErrorCode::Protocol, std::string(doing) + ": its number is no number");
  }
  return number;
}

/// Where tracefs is not mounted, a mount of our own that nobody else sees and that ends with its descriptor.
Fd private_tracefs() {
  const Fd filesystem(static_cast<int>(::syscall(SYS_fsopen, "tracefs", FSOPEN_CLOEXEC)));
  if (!filesystem) return Fd();
  if (::syscall(SYS_fsconfig, filesystem.get(), FSCONFIG_CMD_CREATE, nullptr, nullptr, 0) != 0) return Fd();
  return Fd(static_cast<int>(::syscall(SYS_fsmount, filesystem.get(), FSMOUNT_CLOEXEC, 0)));
}

Result<std::uint64_t> trace_point() {
  constexpr const char* place = "events/printk/console/id";
  Fd file(::open((std::string("/sys/kernel/tracing/") + place).c_str(), O_RDONLY | O_CLOEXEC));
  if (!file) {
    const int error = errno;
    const Fd mount = private_tracefs();
    if (mount) file = Fd(::openat(mount.get(), place, O_RDONLY | O_CLOEXEC));
    if (!file) return fail_errno(doing, error);
  }
  return read_number(file);
}

/// Without a descriptor where it fails; errno says why.
Fd listen(std::uint64_t point, int processor) {
  perf_event_attr attributes{};
  attributes.type = PERF_TYPE_TRACEPOINT;
  attributes.size = sizeof(attributes);
  attributes.config = point;
  attributes.sample_period = 1;
  attributes.wakeup_events = 1;
  return Fd(
      static_cast<int>(::syscall(SYS_perf_event_open, &attributes, -1, processor, -1, PERF_FLAG_FD_CLOEXEC)));
}

}  // namespace

Result<KernelLogBell> KernelLogBell::open() {
  const Result<std::uint64_t> point = trace_point();
  if (!point) return propagate(point);
  KernelLogBell bell;
  const long processors = ::sysconf(_SC_NPROCESSORS_CONF);
  for (int processor = 0; processor < processors; ++processor) {
    Fd fd = listen(*point, processor);
    // A processor that is offline logs nothing.
    if (!fd && errno == ENODEV) continue;
    if (!fd) return fail_errno(doing, errno);
    // Read only: the kernel then overwrites the oldest sample, and never runs out of room.
    Result<Mapping> samples = Mapping::of_file(fd.get(), 2 * page_size(), Protection::Read);
    if (!samples) return propagate(samples, doing);
    bell.chimes_.push_back({std::move(*samples), std::move(fd)});
  }
  return bell;
}

std::vector<const Fd*> KernelLogBell::fds() const {
  std::vector<const Fd*> fds;
  for (const Chime& chime : chimes_) fds.push_back(&chime.fd);
  return fds;
}

}  // namespace firebreak::os
