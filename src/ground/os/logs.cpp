// SPDX-License-Identifier: Apache-2.0
#include "ground/os/logs.h"

#include <fcntl.h>
#include <linux/mount.h>
#include <linux/perf_event.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>
#include <algorithm>
#include <array>
#include <cerrno>
#include <charconv>
#include <cstdio>
#include <utility>

#include "ground/os/fd.h"

namespace firebreak::os {

// --- log rotation

namespace {

constexpr std::size_t piece_bytes = 64 * 1024;

/// A part of a file; `begin` is where a line begins.
struct Span {
  off_t begin = 0;
  off_t end = 0;
};

std::string old_name(const std::string& path, std::size_t number) {
  return path + "." + std::to_string(number);
}

/// Makes room for a new PATH.1; the oldest goes.
void shift_old_files(const std::string& path, std::size_t old_files) {
  for (std::size_t number = old_files; number > 1; --number) {
    static_cast<void>(std::rename(old_name(path, number - 1).c_str(), old_name(path, number).c_str()));
  }
}

Result<std::size_t> read_at(const Fd& fd, char* into, std::size_t size, off_t at) {
  ssize_t got = -1;
  do {
    got = ::pread(fd.get(), into, size, at);
  } while (got < 0 && errno == EINTR);
  if (got < 0) return fail_errno("read a log", errno);
  return static_cast<std::size_t>(got);
}

/// Past what earlier rotations took: the hole, and the zeros up to the end of its last block.
Result<off_t> find_begin(const Fd& fd, off_t end) {
  off_t at = ::lseek(fd.get(), 0, SEEK_DATA);
  if (at < 0) return errno == ENXIO ? Result<off_t>(end) : fail_errno("find a log's beginning", errno);
  std::array<char, 4096> buffer{};
  while (at < end) {
    const auto size = read_at(fd, buffer.data(), buffer.size(), at);
    if (!size) return propagate(size);
    if (*size == 0) return end;
    const auto* const stop = buffer.data() + *size;
    const auto* const text =
        std::find_if(std::as_const(buffer).data(), stop, [](char letter) { return letter != '\0'; });
    at += text - buffer.data();
    if (text != stop) return at;
  }
  return end;
}

/// Returns the place behind the last line end before `end`; `begin` where there is none.
Result<off_t> last_line_end(const Fd& fd, off_t begin, off_t end) {
  std::array<char, 4096> buffer{};
  while (end > begin) {
    const off_t from = std::max(begin, end - static_cast<off_t>(buffer.size()));
    const auto size = read_at(fd, buffer.data(), static_cast<std::size_t>(end - from), from);
    if (!size) return propagate(size);
    for (std::size_t at = *size; at > 0; --at) {
      if (buffer.at(at - 1) == '\n') return from + static_cast<off_t>(at);
    }
    end = from;
  }
  return begin;
}

Status write_all(const Fd& fd, const char* data, std::size_t size) {
  while (size > 0) {
    const ssize_t written = ::write(fd.get(), data, size);
    if (written < 0 && errno == EINTR) continue;
    if (written < 0) return fail_errno("write an old log", errno);
    data += written;
    size -= static_cast<std::size_t>(written);
  }
  return {};
}

Status copy(const Fd& from, Span part, const std::string& to) {
  const Fd file(::open(to.c_str(), O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0600));
  if (!file) return fail_errno("open " + to, errno);
  std::string buffer(piece_bytes, '\0');
  while (part.begin < part.end) {
    const auto wanted = std::min(static_cast<off_t>(buffer.size()), part.end - part.begin);
    const auto size = read_at(from, buffer.data(), static_cast<std::size_t>(wanted), part.begin);
    if (!size) return propagate(size);
    if (*size == 0) return {};
    if (Status written = write_all(file, buffer.data(), *size); !written) return written;
    part.begin += static_cast<off_t>(*size);
  }
  return {};
}

/// Returns the part that is to go: all but the youngest quarter of the limit. Empty: the log is within its
/// limit.
Result<Span> part_to_move(const Fd& fd, const LogLimits& limits) {
  struct stat info {};
  if (::fstat(fd.get(), &info) != 0) return fail_errno("look at a log", errno);
  const auto begin = find_begin(fd, info.st_size);
  if (!begin) return propagate(begin);
  if (static_cast<std::uint64_t>(info.st_size - *begin) <= limits.size_bytes) return Span{*begin, *begin};
  const auto end = last_line_end(fd, *begin, info.st_size - static_cast<off_t>(limits.size_bytes / 4));
  if (!end) return propagate(end);
  return Span{*begin, *end};
}

}  // namespace

Result<bool> rotate_in_place(const std::string& path, const LogLimits& limits) {
  const Fd fd(::open(path.c_str(), O_RDWR | O_CLOEXEC));
  if (!fd) return errno == ENOENT ? Result<bool>(false) : fail_errno("open " + path, errno);
  const auto part = part_to_move(fd, limits);
  if (!part) return propagate(part, path);
  if (part->begin >= part->end) return false;
  const std::string unfinished = path + ".new";
  if (Status copied = copy(fd, *part, unfinished); !copied) {
    ::unlink(unfinished.c_str());
    return propagate(copied);
  }
  if (::fallocate(fd.get(), FALLOC_FL_PUNCH_HOLE | FALLOC_FL_KEEP_SIZE, 0, part->end) != 0) {
    const int error = errno;
    ::unlink(unfinished.c_str());
    if (error != EOPNOTSUPP) return fail_errno("shorten " + path, error);
    return fail(ErrorCode::Unsupported, "the filesystem of " + path + " knows no holes: the log grows on");
  }
  shift_old_files(path, limits.old_files);
  const std::string youngest = old_name(path, 1);
  if (limits.old_files == 0) {
    ::unlink(unfinished.c_str());
  } else if (std::rename(unfinished.c_str(), youngest.c_str()) != 0) {
    return fail_errno("name " + youngest, errno);
  }
  return true;
}

Status rotate_away(const std::string& path, const LogLimits& limits) {
  const Fd fd(::open(path.c_str(), O_RDONLY | O_CLOEXEC));
  if (!fd) return errno == ENOENT ? Status{} : fail_errno("open " + path, errno);
  struct stat info {};
  if (::fstat(fd.get(), &info) != 0) return fail_errno("look at " + path, errno);
  const auto begin = find_begin(fd, info.st_size);
  if (!begin) return propagate(begin, path);
  if (*begin < info.st_size && limits.old_files > 0) {
    shift_old_files(path, limits.old_files);
    // A copy, since the hole of the log itself is nothing that people want to read.
    if (Status copied = copy(fd, {*begin, info.st_size}, old_name(path, 1)); !copied) return copied;
  }
  return ::unlink(path.c_str()) == 0 ? Status{} : fail_errno("remove " + path, errno);
}

Result<std::string> read_tail(const std::string& path, std::size_t size_bytes) {
  const Fd fd(::open(path.c_str(), O_RDONLY | O_CLOEXEC));
  if (!fd) return fail_errno("open " + path, errno);
  const off_t end = ::lseek(fd.get(), 0, SEEK_END);
  if (end < 0) return fail_errno("look at " + path, errno);
  std::string text(std::min(size_bytes, static_cast<std::size_t>(end)), '\0');
  const auto size = read_at(fd, text.data(), text.size(), end - static_cast<off_t>(text.size()));
  if (!size) return propagate(size, path);
  text.resize(*size);
  return text;
}

// --- kernel log bell

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

/// Makes a mount of tracefs, where there is none, that nobody else sees and that ends with its descriptor.
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

/// Returns an invalid descriptor where it fails; errno says why.
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
