// SPDX-License-Identifier: Apache-2.0
#include "ground/os/addresses.h"

#include <fcntl.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/sysmacros.h>
#include <unistd.h>
#include <algorithm>
#include <cerrno>
#include <charconv>
#include <fstream>
#include <functional>
#include <optional>
#include <string>

#include "ground/base/units.h"
#include "ground/os/fd.h"
#include "ground/os/memory.h"

namespace firebreak::os {

// --- device range

namespace {

void* pointer_to(std::uint64_t address) { return reinterpret_cast<void*>(address); }

}  // namespace

Status map_device_range(int device, AddressRange range, Occupant occupant) {
  void* wanted = pointer_to(range.begin);
  const int fixed = occupant == Occupant::Nobody ? MAP_FIXED_NOREPLACE : MAP_FIXED;
  void* mapped = mmap(wanted, range.size_bytes(), PROT_READ | PROT_WRITE, MAP_SHARED | fixed, device,
                      static_cast<off_t>(range.begin));
  if (mapped == MAP_FAILED && errno == EEXIST) {
    return fail(ErrorCode::Unavailable, "something is mapped at these addresses");
  }
  if (mapped == MAP_FAILED) return fail_errno("mmap of a device's addresses", errno);
  if (mapped != wanted) {  // a kernel older than MAP_FIXED_NOREPLACE takes the address for a wish
    munmap(mapped, range.size_bytes());
    return fail(ErrorCode::Unavailable, "something is mapped at these addresses");
  }
  if (mprotect(mapped, range.size_bytes(), PROT_NONE) == 0) return {};
  const auto failed = fail_errno("mprotect of a device's addresses", errno);
  munmap(mapped, range.size_bytes());
  return failed;
}

Status hold_range(AddressRange range) {
  void* held = mmap(pointer_to(range.begin), range.size_bytes(), PROT_NONE,
                    MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE | MAP_FIXED, -1, 0);
  if (held == MAP_FAILED) return fail_errno("mmap of a placeholder", errno);
  return {};
}

std::uint64_t lowest_mappable_address() {
  std::ifstream file("/proc/sys/vm/mmap_min_addr");
  std::uint64_t lowest = 0;
  return file >> lowest && lowest > 0 ? lowest : 0x10000;
}

bool may_map_page_zero() {
  void* mapped = mmap(nullptr, 4096, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED_NOREPLACE, -1, 0);
  if (mapped == MAP_FAILED) return false;
  munmap(mapped, 4096);
  return mapped == nullptr;
}

// --- address room

std::vector<AddressRange> room_to_grow() {
  constexpr std::uint64_t heap_room = 64 * gib;
  constexpr std::uint64_t least_stack_room = gib;
  constexpr std::uint64_t most_stack_room = 64 * gib;
  std::vector<AddressRange> rooms;
  const auto heap_end = reinterpret_cast<std::uint64_t>(::sbrk(0));
  rooms.push_back({heap_end, heap_end + heap_room});
  rlimit limit{};
  const bool known = ::getrlimit(RLIMIT_STACK, &limit) == 0 && limit.rlim_cur != RLIM_INFINITY;
  const std::uint64_t wanted = known ? std::uint64_t{limit.rlim_cur} : most_stack_room;
  // The environment's strings lie at the stack's upper end.
  const auto stack = reinterpret_cast<std::uint64_t>(environ == nullptr ? nullptr : *environ);
  const std::uint64_t room = std::clamp(wanted, least_stack_room, most_stack_room);
  if (stack > room) rooms.push_back({stack - room, stack});
  return rooms;
}

std::optional<std::uint64_t> address_space_left() {
  rlimit limit{};
  if (::getrlimit(RLIMIT_AS, &limit) != 0 || limit.rlim_cur == RLIM_INFINITY) return {};
  std::uint64_t pages = 0;
  std::ifstream file("/proc/self/statm");
  if (!(file >> pages)) return 0;
  const std::uint64_t used = pages * page_size();
  return used < limit.rlim_cur ? limit.rlim_cur - used : 0;
}

void release_range(AddressRange range) { ::munmap(reinterpret_cast<void*>(range.begin), range.size_bytes()); }

// --- memory map

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
  std::string_view left() const { return left_; }

 private:
  std::string_view left_;
};

void for_each_line(std::string_view text, const std::function<void(std::string_view)>& act) {
  while (!text.empty()) {
    const std::size_t length = std::min(text.find('\n'), text.size());
    act(text.substr(0, length));
    text.remove_prefix(std::min(length + 1, text.size()));
  }
}

/// begin-end rights offset major:minor inode [path]; what is left of `fields` is the path.
std::optional<MappedRegion> parse_line(Fields& fields) {
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

Result<std::vector<MappedRegion>> read_all(pid_t pid) {
  const auto text = content_of_proc(path_of(pid));
  if (!text) return propagate(text);
  return parse_memory_map(*text);
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

Result<std::vector<MappedRegion>> memory_map(pid_t pid) { return read_all(pid); }

Result<std::vector<MappedRegion>> memory_map_within(pid_t pid, std::uint64_t begin, std::uint64_t end) {
  const auto file = open_map(pid);
  if (!file) return propagate(file);
  if (auto asked = ask_for_regions(*file, begin, end)) return asked;
  auto all = read_all(pid);
  if (all) {
    std::erase_if(*all, [&](const MappedRegion& each) { return each.end <= begin || each.begin >= end; });
  }
  return all;
}

std::vector<MappedRegion> parse_memory_map(std::string_view text) {
  std::vector<MappedRegion> regions;
  for_each_line(text, [&](std::string_view line) {
    Fields fields(line);
    if (const auto region = parse_line(fields)) regions.push_back(*region);
  });
  return regions;
}

std::vector<NamedRegion> parse_named_regions(std::string_view text) {
  std::vector<NamedRegion> regions;
  for_each_line(text, [&](std::string_view line) {
    Fields fields(line);
    const auto region = parse_line(fields);
    if (!region || region->end <= region->begin) return;
    const std::string_view name = fields.left();
    regions.push_back(
        {{region->begin, region->end}, std::string(name.substr(std::min(name.find('/'), name.size())))});
  });
  return regions;
}

std::vector<NamedRegion> named_regions() {
  const auto text = content_of_proc("/proc/self/maps");
  return text ? parse_named_regions(*text) : std::vector<NamedRegion>();
}

}  // namespace firebreak::os
