// SPDX-License-Identifier: Apache-2.0
#include "os/memory_map.h"

#include <fcntl.h>
#include <sys/ioctl.h>
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

/// struct procmap_query of Linux 6.11 (include/uapi/linux/fs.h); older headers have none.
struct RegionQuery {
  std::uint64_t size_bytes = sizeof(RegionQuery);
  std::uint64_t query_flags = 0;
  std::uint64_t address = 0;
  std::uint64_t begin = 0;
  std::uint64_t end = 0;
  std::uint64_t flags = 0;
  std::uint64_t page_bytes = 0;
  std::uint64_t offset_bytes = 0;
  std::uint64_t inode = 0;
  std::uint32_t device_major = 0;
  std::uint32_t device_minor = 0;
  std::uint32_t name_bytes = 0;
  std::uint32_t build_id_bytes = 0;
  std::uint64_t name_address = 0;
  std::uint64_t build_id_address = 0;
};
static_assert(sizeof(RegionQuery) == 104);
constexpr unsigned long query_region = _IOWR('f', 17, RegionQuery);
constexpr std::uint64_t is_writable = 2;
constexpr std::uint64_t holding_or_next = 16;

std::string path_of(pid_t pid) { return "/proc/" + std::to_string(pid) + "/maps"; }

Result<Fd> open_map(pid_t pid) {
  const std::string path = path_of(pid);
  Fd file(::open(path.c_str(), O_RDONLY | O_CLOEXEC));
  if (!file) return fail_errno("open " + path, errno);
  return file;
}

Result<std::vector<MappedRegion>> read_all(const Fd& file, pid_t pid) {
  std::string text;
  std::array<char, 65536> buffer;
  while (true) {
    const ssize_t got = ::read(file.get(), buffer.data(), buffer.size());
    if (got < 0 && errno == EINTR) continue;
    if (got < 0) return fail_errno("read " + path_of(pid), errno);
    if (got == 0) return parse_memory_map(text);
    text.append(buffer.data(), static_cast<std::size_t>(got));
  }
}

/// The one that holds the address, or the next one; empty: there is none.
Result<std::optional<MappedRegion>> region_from(const Fd& file, std::uint64_t address) {
  RegionQuery query;
  query.query_flags = holding_or_next;
  query.address = address;
  int asked = 0;
  do {
    asked = ::ioctl(file.get(), query_region, &query);
  } while (asked != 0 && errno == EINTR);
  if (asked != 0 && errno == ENOENT) return std::optional<MappedRegion>();
  if (asked != 0) return fail_errno("ask for a mapped region", errno);
  const dev_t device = makedev(query.device_major, query.device_minor);
  const bool writable = (query.flags & is_writable) != 0;
  return std::optional(
      MappedRegion{query.begin, query.end, query.offset_bytes, {device, query.inode}, writable});
}

Result<std::vector<MappedRegion>> ask_for_regions(const Fd& file, std::uint64_t begin, std::uint64_t end) {
  std::vector<MappedRegion> regions;
  while (begin < end) {
    const auto region = region_from(file, begin);
    if (!region) return propagate(region);
    if (!*region || (*region)->begin >= end) break;
    regions.push_back(**region);
    begin = (*region)->end;
  }
  return regions;
}

}  // namespace

Result<std::vector<MappedRegion>> memory_map(pid_t pid) {
  const auto file = open_map(pid);
  return file ? read_all(*file, pid) : propagate(file);
}

Result<std::vector<MappedRegion>> memory_map_within(pid_t pid, std::uint64_t begin, std::uint64_t end) {
  const auto file = open_map(pid);
  if (!file) return propagate(file);
  if (auto asked = ask_for_regions(*file, begin, end)) return asked;
  auto all = read_all(*file, pid);
  if (all) {
    std::erase_if(*all, [&](const MappedRegion& each) { return each.end <= begin || each.begin >= end; });
  }
  return all;
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
