// SPDX-License-Identifier: Apache-2.0
#include "program/guard/guarded_address_space.h"

#include <fmt/format.h>

#include <algorithm>

#include "ground/os/address_set.h"
#include "ground/os/addresses.h"
#include "ground/os/self.h"

namespace firebreak::guard {

Status GuardedAddressSpace::start() {
  const std::lock_guard lock(mutex_);
  const auto added = add_piece(settings_.piece_bytes);
  if (added) cover_low_addresses();
  return added;
}

void GuardedAddressSpace::tell(os::AddressRange covered) {
  if (!ledger_.covered(covered.begin, covered.end, all_bytes())) {
    remark_ = "its page has no room for all ranges";
  }
}

CUdeviceptr GuardedAddressSpace::find_room(std::uint64_t size_bytes) const {
  const std::uint64_t reach = settings_.margins.reach_bytes;
  CUdeviceptr begin = 0;
  if (reach == 0 || driver_->cuMemAddressReserve(&begin, size_bytes + 2 * reach, Arena::granule_bytes, 0,
                                                 0) != CUDA_SUCCESS)
    return 0;
  driver_->cuMemAddressFree(begin, size_bytes + 2 * reach);
  return begin + reach;
}

Status GuardedAddressSpace::add_piece(std::uint64_t size_bytes) {
  const std::uint64_t usable = round_up(size_bytes, Arena::granule_bytes);
  const std::uint64_t size = usable + round_up(settings_.tail_bytes, Arena::granule_bytes);
  CUdeviceptr begin = 0;
  const auto reserved =
      driver_.check(driver_->cuMemAddressReserve(&begin, size, Arena::granule_bytes, find_room(size), 0),
                    "cuMemAddressReserve");
  if (!reserved) return reserved;
  const os::AddressRange piece{begin, begin + size};
  const auto laid = guard_ranges_.lay_over_reserved(piece);
  if (!laid) {
    (void)guard_ranges_.cut_reserved(piece);
    driver_->cuMemAddressFree(begin, size);
    return laid;
  }
  arena_.add({begin, begin + usable});
  elsewhere_bytes_ += size - usable;
  tell(piece);
  lay_margins(piece);
  return laid;
}

void GuardedAddressSpace::lay_margin(os::AddressRange margin) {
  if (!guard_ranges_.lay(margin)) return;
  margins_.laid(margin);
  tell(margin);
}

void GuardedAddressSpace::lay_margins(os::AddressRange around) {
  if (margins_.knows(around)) return;
  const auto mapped = os::memory_map(os::own_pid());
  if (!mapped) return;
  std::vector<os::AddressRange> taken = os::room_to_grow();
  for (const os::MappedRegion& region : *mapped) taken.push_back({region.begin, region.end});
  // A process that is limited is to have most of that for itself.
  constexpr std::uint64_t share = 4;
  const auto left = os::address_space_left();
  const std::uint64_t room = left ? *left / share : ~std::uint64_t{0};
  for (const os::AddressRange& margin : margins_.plan(around, taken, room)) lay_margin(margin);
}

void GuardedAddressSpace::surround(os::AddressRange allocation) {
  const std::lock_guard lock(mutex_);
  lay_margins(allocation);
}

std::vector<os::AddressRange> GuardedAddressSpace::give_way(os::AddressRange wanted) {
  const std::lock_guard lock(mutex_);
  const std::vector<os::AddressRange> before = margins_.all();
  const std::vector<os::AddressRange> ways = margins_.give_way(wanted);
  if (ways.empty()) return ways;
  for (const os::AddressRange& way : ways) guard_ranges_.release(way);
  const Monotonic now = SystemClock().now();
  for (const os::AddressRange& margin : before) {
    const bool stays = std::ranges::count(margins_.all(), margin) != 0;
    if (!stays) ledger_.uncovered(margin.begin, margin.end, all_bytes(), now);
  }
  for (const os::AddressRange& margin : margins_.all()) {
    if (std::ranges::count(before, margin) == 0) tell(margin);
  }
  return ways;
}

void GuardedAddressSpace::come_back(const std::vector<os::AddressRange>& margins) {
  const std::lock_guard lock(mutex_);
  for (const os::AddressRange& margin : margins) lay_margin(margin);
}

void GuardedAddressSpace::cover_low_addresses() {
  const auto mapped = os::memory_map(os::own_pid());
  if (!mapped) {
    remark_ = mapped.error().message;
    return;
  }
  std::uint64_t missing = 0;
  const std::uint64_t lowest = os::lowest_mappable_address();
  // Page 0 takes a right (CAP_SYS_RAWIO); whoever has it still crashes when the CPU follows a null pointer.
  if (lowest > 0 && guard_ranges_.lay({0, lowest})) {
    elsewhere_bytes_ += lowest;
    tell({0, lowest});
  }
  os::AddressSet taken;
  for (const os::MappedRegion& region : *mapped) taken.add({region.begin, region.end});
  for (const os::AddressRange& gap : taken.missing_of({lowest, settings_.low_end})) {
    const auto laid = guard_ranges_.lay(gap);
    (laid ? elsewhere_bytes_ : missing) += gap.size_bytes();
    if (laid) tell(gap);
  }
  if (missing != 0) remark_ = fmt::format("{} MiB of low addresses are not covered", missing / mib);
}

std::optional<os::AddressRange> GuardedAddressSpace::take(std::uint64_t size_bytes) {
  const std::lock_guard lock(mutex_);
  if (auto range = arena_.take(size_bytes)) return range;
  // A piece for this one alone would leave no guard ranges around it.
  const std::uint64_t around = std::min(settings_.piece_bytes, gib);
  const std::uint64_t more = around + settings_.tail_bytes;
  if (size_bytes > (std::uint64_t{1} << 46) || guard_range_bytes() + more > settings_.guard_range_bytes_max)
    return {};
  if (!add_piece(size_bytes + around)) return {};
  return arena_.take(size_bytes);
}

void GuardedAddressSpace::give(std::uint64_t begin) {
  const std::lock_guard lock(mutex_);
  arena_.give(begin);
  ledger_.set_guard_range_bytes(all_bytes());
}

bool GuardedAddressSpace::adopt(os::AddressRange reservation) {
  const std::lock_guard lock(mutex_);
  if (guard_range_bytes() + reservation.size_bytes() > settings_.guard_range_bytes_max) return false;
  if (!guard_ranges_.lay_over_reserved(reservation)) {
    (void)guard_ranges_.cut_reserved(reservation);
    return false;
  }
  elsewhere_bytes_ += reservation.size_bytes();
  tell(reservation);
  lay_margins(reservation);
  return true;
}

void GuardedAddressSpace::release(os::AddressRange reservation) {
  const std::lock_guard lock(mutex_);
  elsewhere_bytes_ -= reservation.size_bytes();
  ledger_.uncovered(reservation.begin, reservation.end, all_bytes(), SystemClock().now());
}

Status GuardedAddressSpace::open(os::AddressRange part) {
  const std::lock_guard lock(mutex_);
  ledger_.set_guard_range_bytes(all_bytes());
  return guard_ranges_.cut_reserved(part);
}

Status GuardedAddressSpace::close(os::AddressRange part) {
  const std::lock_guard lock(mutex_);
  return guard_ranges_.lay_over_reserved(part);
}

}  // namespace firebreak::guard
