// SPDX-License-Identifier: Apache-2.0
#include "guard/territory.h"

#include <fmt/format.h>

#include <algorithm>

#include "guard/address_set.h"
#include "os/memory_map.h"
#include "os/self.h"

namespace firebreak::guard {

Status Territory::start() {
  const std::lock_guard lock(mutex_);
  const auto added = add_piece(settings_.piece_bytes);
  if (added) cover_low_addresses();
  return added;
}

void Territory::tell(os::AddressRange covered) {
  if (!ledger_.covered(covered.begin, covered.end, blanket_bytes())) {
    remark_ = "its page has no room for all ranges";
  }
}

Status Territory::add_piece(std::uint64_t size_bytes) {
  const std::uint64_t size = round_up(size_bytes, Arena::granule_bytes);
  CUdeviceptr begin = 0;
  const auto reserved = driver_.check(driver_->cuMemAddressReserve(&begin, size, Arena::granule_bytes, 0, 0),
                                      "cuMemAddressReserve");
  if (!reserved) return reserved;
  const os::AddressRange piece{begin, begin + size};
  const auto laid = blanket_.lay_over_reserved(piece);
  if (!laid) {
    (void)blanket_.cut_reserved(piece);
    driver_->cuMemAddressFree(begin, size);
    return laid;
  }
  arena_.add(piece);
  tell(piece);
  return laid;
}

void Territory::cover_low_addresses() {
  const auto mapped = os::memory_map(os::own_pid());
  if (!mapped) {
    remark_ = mapped.error().message;
    return;
  }
  std::uint64_t missing = 0;
  const std::uint64_t lowest = os::lowest_mappable_address();
  // Page 0 takes a right (CAP_SYS_RAWIO); whoever has it still crashes when the CPU follows a null pointer.
  if (lowest > 0 && blanket_.lay({0, lowest})) {
    elsewhere_bytes_ += lowest;
    tell({0, lowest});
  }
  AddressSet taken;
  for (const os::MappedRegion& region : *mapped) taken.add({region.begin, region.end});
  for (const os::AddressRange& gap : taken.missing_of({lowest, settings_.low_end})) {
    const auto laid = blanket_.lay(gap);
    (laid ? elsewhere_bytes_ : missing) += gap.size_bytes();
    if (laid) tell(gap);
  }
  if (missing != 0) remark_ = fmt::format("{} MiB of low addresses are not covered", missing / mib);
}

std::optional<os::AddressRange> Territory::take(std::uint64_t size_bytes) {
  const std::lock_guard lock(mutex_);
  if (auto range = arena_.take(size_bytes)) return range;
  // A piece for this one alone would leave no blanket around it.
  const std::uint64_t around = std::min(settings_.piece_bytes, gib);
  if (size_bytes > (std::uint64_t{1} << 46) || blanket_bytes() + around > settings_.blanket_bytes_max)
    return {};
  if (!add_piece(size_bytes + around)) return {};
  return arena_.take(size_bytes);
}

void Territory::give(std::uint64_t begin) {
  const std::lock_guard lock(mutex_);
  arena_.give(begin);
  ledger_.set_blanket_bytes(blanket_bytes());
}

bool Territory::adopt(os::AddressRange reservation) {
  const std::lock_guard lock(mutex_);
  if (blanket_bytes() + reservation.size_bytes() > settings_.blanket_bytes_max) return false;
  if (!blanket_.lay_over_reserved(reservation)) {
    (void)blanket_.cut_reserved(reservation);
    return false;
  }
  elsewhere_bytes_ += reservation.size_bytes();
  tell(reservation);
  return true;
}

void Territory::release(os::AddressRange reservation) {
  const std::lock_guard lock(mutex_);
  elsewhere_bytes_ -= reservation.size_bytes();
  ledger_.uncovered(reservation.begin, reservation.end, blanket_bytes(), SystemClock().now());
}

Status Territory::open(os::AddressRange part) {
  const std::lock_guard lock(mutex_);
  ledger_.set_blanket_bytes(blanket_bytes());
  return blanket_.cut_reserved(part);
}

Status Territory::close(os::AddressRange part) {
  const std::lock_guard lock(mutex_);
  return blanket_.lay_over_reserved(part);
}

}  // namespace firebreak::guard
