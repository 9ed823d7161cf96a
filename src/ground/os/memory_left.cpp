// SPDX-License-Identifier: Apache-2.0
#include "ground/os/memory_left.h"

#include <sys/mman.h>

#include <algorithm>
#include <charconv>
#include <utility>

#include "ground/os/memory.h"

namespace firebreak::os {
namespace {

std::optional<std::uint64_t> number_at_begin(std::string_view text) {
  const std::size_t first = text.find_first_not_of(" \t");
  if (first == std::string_view::npos) return std::nullopt;
  std::uint64_t number = 0;
  const auto read = std::from_chars(text.data() + first, text.data() + text.size(), number);
  return read.ec == std::errc() ? std::optional(number) : std::nullopt;
}

/// Empty: it is not to be read.
std::string text_of(const std::string& path) {
  auto content = content_of_proc(path);
  return content ? std::move(*content) : std::string();
}

}  // namespace

Result<OwnMemory> OwnMemory::of(std::size_t size_bytes) {
  void* const address =
      ::mmap(nullptr, size_bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
  if (address == MAP_FAILED)
    return fail(ErrorCode::ResourceExhausted,
                "there is no room for " + std::to_string(size_bytes >> 20U) + " MiB in this process");
  (void)::madvise(address, size_bytes, MADV_HUGEPAGE);
  (void)::madvise(address, size_bytes, MADV_DONTFORK);
  return OwnMemory(static_cast<std::byte*>(address), size_bytes);
}

OwnMemory::~OwnMemory() {
  if (begin_ != nullptr) ::munmap(begin_, size_bytes_);
}

std::optional<std::uint64_t> available_in(std::string_view meminfo) {
  constexpr std::string_view name = "MemAvailable:";
  const std::size_t line = meminfo.find(name);
  if (line == std::string_view::npos) return std::nullopt;
  const auto kib = number_at_begin(meminfo.substr(line + name.size()));
  return kib ? std::optional(*kib << 10U) : std::nullopt;
}

std::vector<std::string> group_folders_in(std::string_view proc_cgroup) {
  constexpr std::string_view of_second_version = "0::";
  std::vector<std::string> folders;
  std::size_t line = proc_cgroup.starts_with(of_second_version) ? 0 : proc_cgroup.find("\n0::");
  if (line == std::string_view::npos) return folders;
  if (proc_cgroup[line] == '\n') ++line;
  std::string_view path = proc_cgroup.substr(line + of_second_version.size());
  path = path.substr(0, path.find('\n'));
  while (path.size() > 1) {
    folders.push_back("/sys/fs/cgroup" + std::string(path));
    path = path.substr(0, path.rfind('/'));
  }
  folders.emplace_back("/sys/fs/cgroup");  // a container's own group is the root of what it sees
  return folders;
}

std::optional<std::uint64_t> left_in_group(std::string_view max, std::string_view current) {
  const auto most = number_at_begin(max);
  const auto now = number_at_begin(current);
  if (!most || !now) return std::nullopt;
  return *most - std::min(*most, *now);
}

std::optional<std::uint64_t> memory_left_bytes() {
  auto left = available_in(text_of("/proc/meminfo"));
  for (const std::string& folder : group_folders_in(text_of("/proc/self/cgroup"))) {
    const auto in_group = left_in_group(text_of(folder + "/memory.max"), text_of(folder + "/memory.current"));
    if (in_group) left = std::min(left.value_or(*in_group), *in_group);
  }
  return left;
}

}  // namespace firebreak::os
