// SPDX-License-Identifier: Apache-2.0
#include "ground/os/kernel.h"

#include <algorithm>
#include <charconv>
#include <string_view>
#include <utility>

#include "ground/os/file.h"
#include "ground/os/looks.h"

namespace firebreak::os {
namespace {

/// Reads "GPU UUID:  GPU-01234567-89ab-cdef-0123-456789abcdef" in the text; empty: no GPU is described there,
/// or one that nobody has used yet.
std::optional<Kernel::GpuUuid> parse_uuid(std::string_view text) {
  constexpr std::string_view label = "GPU-";
  const std::size_t found = text.find(label);
  if (found == std::string_view::npos) return std::nullopt;
  std::string digits;
  for (const char c : text.substr(found + label.size(), 36)) {
    if (c != '-') digits.push_back(c);
  }
  Kernel::GpuUuid uuid{};
  if (digits.size() != 2 * uuid.size()) return std::nullopt;
  for (std::size_t i = 0; i < uuid.size(); ++i) {
    const char* begin = digits.data() + 2 * i;
    if (std::from_chars(begin, begin + 2, uuid[i], 16).ptr != begin + 2) return std::nullopt;
  }
  return uuid;
}

}  // namespace

Result<std::unique_ptr<Standstill>> Looks::stop_all_but_writers(pid_t /*pid*/, const Fd& /*pipe*/) {
  return fail(ErrorCode::Unsupported, "nobody is there to stop a process");
}

std::vector<Result<Fd>> Looks::duplicate_all(const Fd& pidfd, std::span<const DescriptorLink> wanted) {
  std::vector<Result<Fd>> all;
  for (const DescriptorLink& each : wanted) all.push_back(duplicate(pidfd, each.number, each.target));
  return all;
}

std::vector<Result<bool>> Looks::are_same_files(pid_t pid, pid_t other, std::span<const NumberPair> numbers) {
  std::vector<Result<bool>> all;
  for (const NumberPair& each : numbers) all.push_back(is_same_file(pid, each.number, other, each.other));
  return all;
}

std::vector<Result<Fd>> Kernel::pidfd_getfds(const Fd& pidfd, std::span<const DescriptorLink> wanted) {
  std::vector<Result<Fd>> all;
  for (const DescriptorLink& each : wanted) all.push_back(pidfd_getfd(pidfd, each.number, each.target));
  return all;
}

std::vector<Result<bool>> Kernel::are_same_files(pid_t pid, std::span<const FilePair> files) {
  std::vector<Result<bool>> all;
  for (const FilePair& each : files) all.push_back(is_same_file(pid, each.remote_number, *each.own));
  return all;
}

Status Kernel::give_file(const Fd& file, uid_t user) { return os::give_file(file, user); }

Status Kernel::mark_fifo(const Fd& fifo, bool is_marked) { return os::mark_fifo(fifo, is_marked); }

Result<DescriptorLinks> Kernel::read_links(const std::string& directory, int from) {
  const auto names = list_directory(directory);
  if (!names) return propagate(names);
  std::vector<int> numbers;
  for (const std::string& name : *names) {
    int number = -1;
    if (std::from_chars(name.data(), name.data() + name.size(), number).ec != std::errc{}) continue;
    if (number >= from) numbers.push_back(number);
  }
  std::ranges::sort(numbers);
  DescriptorLinks links;
  if (numbers.size() > most_descriptors_in_a_look) links.next = numbers[most_descriptors_in_a_look];
  numbers.resize(std::min(numbers.size(), most_descriptors_in_a_look));
  for (const int number : numbers) {
    auto target = read_link(directory + "/" + std::to_string(number));
    links.has_missed_any |= !target;
    if (target) links.all.push_back({number, std::move(*target)});
  }
  return links;
}

Result<std::vector<Kernel::GpuUuid>> Kernel::gpu_uuids() {
  const std::string folder = "/proc/driver/nvidia/gpus";
  const auto names = list_directory(folder);
  if (!names) return propagate(names);
  std::vector<GpuUuid> uuids;
  for (const std::string& name : *names) {
    const auto text = read_file(folder + "/" + name + "/information");
    const auto uuid = text ? parse_uuid(*text) : std::nullopt;
    if (uuid) uuids.push_back(*uuid);
  }
  return uuids;
}

Result<std::string> Kernel::gpu_driver() {
  const auto version = read_file("/proc/driver/nvidia/version");
  if (!version) return propagate(version);
  return version->substr(0, version->find('\n'));
}

}  // namespace firebreak::os
