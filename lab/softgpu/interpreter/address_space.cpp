// SPDX-License-Identifier: Apache-2.0
#include "softgpu/interpreter/address_space.h"

#include <mutex>
#include <utility>

namespace firebreak::softgpu {

bool AddressSpace::map(Translation range) {
  if (range.begin >= range.end) return false;
  const std::unique_lock lock(mutex_);
  const auto next = ranges_.lower_bound(range.begin);
  if (next != ranges_.end() && next->second.begin < range.end) return false;
  if (next != ranges_.begin() && std::prev(next)->second.end > range.begin) return false;
  ranges_.emplace(range.begin, std::move(range));
  generation_.fetch_add(1, std::memory_order_acq_rel);
  return true;
}

bool AddressSpace::unmap(std::uint64_t begin, std::uint64_t size) {
  const std::uint64_t end = begin + size;
  std::map<std::uint64_t, Translation>
      removed;  // destroyed after the lock: the owner's deleter may take its time
  const std::unique_lock lock(mutex_);
  auto first = ranges_.lower_bound(begin);
  if (first != ranges_.begin() && std::prev(first)->second.end > begin) return false;
  const auto last = ranges_.lower_bound(end);
  if (last != ranges_.begin() && std::prev(last)->second.end > end) return false;
  while (first != last) removed.insert(ranges_.extract(first++));
  generation_.fetch_add(1, std::memory_order_acq_rel);
  return true;
}

bool AddressSpace::protect(std::uint64_t begin, std::uint64_t size, PageAccess access) {
  const std::uint64_t end = begin + size;
  const std::unique_lock lock(mutex_);
  std::uint64_t covered = begin;
  for (auto range = ranges_.lower_bound(begin); range != ranges_.end() && range->second.end <= end; ++range) {
    if (range->second.begin != covered) return false;
    covered = range->second.end;
  }
  if (covered != end) return false;
  for (auto range = ranges_.lower_bound(begin); range != ranges_.end() && range->first < end; ++range) {
    range->second.access = access;
  }
  generation_.fetch_add(1, std::memory_order_acq_rel);
  return true;
}

std::optional<Translation> AddressSpace::find(std::uint64_t address) const {
  const std::shared_lock lock(mutex_);
  auto next = ranges_.upper_bound(address);
  if (next == ranges_.begin()) return std::nullopt;
  const Translation& range = std::prev(next)->second;
  if (address >= range.end || range.access == PageAccess::None) return std::nullopt;
  return range;
}

}  // namespace firebreak::softgpu
