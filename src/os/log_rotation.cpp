// SPDX-License-Identifier: Apache-2.0
#include "os/log_rotation.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstdio>
#include <utility>

#include "os/errno_error.h"
#include "os/fd.h"

namespace firebreak::os {
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

/// After the last line end before `end`; `begin` where there is none.
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

/// What is to go: all but the youngest quarter of the limit. Empty: the log is within its limit.
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

}  // namespace firebreak::os
