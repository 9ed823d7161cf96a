// SPDX-License-Identifier: Apache-2.0
#include "program/rest/host_content.h"

#include <algorithm>
#include <string>
#include <utility>

namespace firebreak::rest {

std::uint64_t left_for_others_bytes(std::uint64_t left_bytes) {
  constexpr std::uint64_t at_least = std::uint64_t{256} << 20U;
  return std::max(left_bytes / 16, at_least);
}

Status check_room(std::uint64_t wanted_bytes, std::optional<std::uint64_t> left_bytes) {
  if (!left_bytes) return {};
  const std::uint64_t others = std::min(left_for_others_bytes(*left_bytes), *left_bytes);
  if (wanted_bytes <= *left_bytes - others) return {};
  return fail(ErrorCode::ResourceExhausted, "the host has not enough memory for its content: it takes " +
                                                std::to_string(wanted_bytes >> 20U) + " MiB, and " +
                                                std::to_string(*left_bytes >> 20U) + " are left");
}

Result<HostContent> HostContent::of(const std::vector<GpuRange>& ranges) {
  HostContent content;
  for (const GpuRange& range : ranges) content.size_bytes_ += range.size_bytes;
  if (const Status room = check_room(content.size_bytes_, os::memory_left_bytes()); !room)
    return propagate(room);
  for (const GpuRange& range : ranges) {
    auto memory = os::OwnMemory::of(range.size_bytes);
    if (!memory) return propagate(memory);
    content.all_.push_back({range, std::move(*memory)});
  }
  return content;
}

std::vector<Chunk> HostContent::chunks(std::size_t size_bytes_max) const {
  std::vector<Chunk> all;
  for (const Kept& each : all_) {
    for (std::uint64_t at = 0; at < each.range.size_bytes; at += size_bytes_max) {
      const std::size_t size = std::min<std::uint64_t>(size_bytes_max, each.range.size_bytes - at);
      all.push_back({each.range.begin + at, each.memory.begin() + at, size});
    }
  }
  return all;
}

}  // namespace firebreak::rest
