// SPDX-License-Identifier: Apache-2.0
#include "os/memory_map.h"

#include <fcntl.h>
#include <sys/sysmacros.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <charconv>
#include <optional>
#include <string>

#include "os/errno_error.h"
#include "os/fd.h"

namespace firebreak::os {
namespace {

/// Numbers of a line, taken one by one from its front.
class Fields {
 public:
  explicit Fields(std::string_view text) : left_(text) {}
  /// The number up to `end`; empty when there is none.
  std::optional<std::uint64_t> number(char end, int base) {
    const std::size_t length = left_.find(end);
    if (length == std::string_view::npos) return std::nullopt;
    std::uint64_t value = 0;
    const auto [rest, error] = std::from_chars(left_.data(), left_.data() + length, value, base);
    if (error != std::errc{} || rest != left_.data() + length) return std::nullopt;
    left_.remove_prefix(length + 1);
    return value;
  }
  std::string_view word(char end) {
    const std::string_view word = left_.substr(0, left_.find(end));
    left_.remove_prefix(std::min(word.size() + 1, left_.size()));
    return word;
  }
  bool empty() const { return left_.empty(); }

 private:
  std::string_view left_;
};

/// begin-end rights offset major:minor inode [path]
std::optional<MappedRegion> parse_line(std::string_view line) {
  Fields fields(line);
  const auto begin = fields.number('-', 16);
  const auto end = fields.number(' ', 16);
  if (!begin || !end || fields.empty()) return std::nullopt;
  const bool writable = fields.word(' ').find('w') != std::string_view::npos;
  const auto offset_bytes = fields.number(' ', 16);
  const auto major = fields.number(':', 16);
  const auto minor = fields.number(' ', 16);
  const auto inode = fields.number(' ', 10);
  if (!offset_bytes || !major || !minor || !inode) return std::nullopt;
  const dev_t device = makedev(static_cast<unsigned int>(*major), static_cast<unsigned int>(*minor));
  return MappedRegion{*begin, *end, *offset_bytes, {device, *inode}, writable};
}

}  // namespace

Result<std::vector<MappedRegion>> memory_map(pid_t pid) {
  const std::string path = "/proc/" + std::to_string(pid) + "/maps";
  const Fd file(::open(path.c_str(), O_RDONLY | O_CLOEXEC));
  if (!file) return fail_errno("open " + path, errno);
  std::string text;
  std::array<char, 65536> buffer;
  while (true) {
    const ssize_t got = ::read(file.get(), buffer.data(), buffer.size());
    if (got < 0 && errno == EINTR) continue;
    if (got < 0) return fail_errno("read " + path, errno);
    if (got == 0) return parse_memory_map(text);
    text.append(buffer.data(), static_cast<std::size_t>(got));
  }
}

std::vector<MappedRegion> parse_memory_map(std::string_view text) {
  std::vector<MappedRegion> regions;
  while (!text.empty()) {
    const std::size_t length = std::min(text.find('\n'), text.size());
    if (const auto region = parse_line(text.substr(0, length))) regions.push_back(*region);
    text.remove_prefix(std::min(length + 1, text.size()));
  }
  return regions;
}

}  // namespace firebreak::os
