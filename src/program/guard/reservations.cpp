// SPDX-License-Identifier: Apache-2.0
/// cuMemAddressReserve and what goes with it. The driver does all of it; where the GPU can reach nothing, the
/// addresses are guard ranges: before a mapping has rights, and again when it is gone.
#include <algorithm>
#include <iterator>

#include "program/guard/guard.h"

namespace firebreak::guard {

/// Returns which parts of `range` are guarded: they lie in reservations of the program's that are guarded,
/// and nobody can reach it.
std::vector<os::AddressRange> Guard::guarded_parts(os::AddressRange range) const {
  std::vector<os::AddressRange> parts;
  auto next = adopted_.upper_bound(range.begin);
  if (next != adopted_.begin()) --next;
  for (; next != adopted_.end() && next->first < range.end; ++next) {
    const os::AddressRange inside{std::max<std::uint64_t>(next->first, range.begin),
                                  std::min(next->second, range.end)};
    if (inside.begin >= inside.end) continue;
    const auto unreached = reach_.unreached_of(inside);
    parts.insert(parts.end(), unreached.begin(), unreached.end());
  }
  return parts;
}

Status Guard::open_all(const std::vector<os::AddressRange>& parts) {
  for (const os::AddressRange& part : parts) {
    if (const Status opened = address_space_->open(part); !opened) return opened;
  }
  return {};
}

void Guard::close_all(const std::vector<os::AddressRange>& parts) {
  for (const os::AddressRange& part : parts) (void)address_space_->close(part);
}

CUresult Guard::reserve(CUdeviceptr* begin, std::size_t size_bytes, std::size_t alignment_bytes,
                        CUdeviceptr hint, unsigned long long flags) {
  if (!is_on()) return driver_->cuMemAddressReserve(begin, size_bytes, alignment_bytes, hint, flags);
  const std::lock_guard lock(mutex_);
  std::vector<os::AddressRange> ways;
  if (hint != 0 && hint + size_bytes > hint) ways = address_space_->give_way({hint, hint + size_bytes});
  const CUresult result = driver_->cuMemAddressReserve(begin, size_bytes, alignment_bytes, hint, flags);
  if (result != CUDA_SUCCESS || *begin != hint) address_space_->come_back(ways);
  if (result != CUDA_SUCCESS) return result;
  const os::AddressRange reservation{*begin, *begin + size_bytes};
  if (address_space_->adopt(reservation)) {
    adopted_.emplace(reservation.begin, reservation.end);
  } else {
    address_space_->surround(reservation);
  }
  return result;
}

CUresult Guard::release(CUdeviceptr begin, std::size_t size_bytes) {
  const std::lock_guard lock(mutex_);
  const auto found = adopted_.find(begin);
  if (found == adopted_.end() || found->second != begin + size_bytes)
    return driver_->cuMemAddressFree(begin, size_bytes);
  const os::AddressRange reservation{begin, begin + size_bytes};
  const auto parts = guarded_parts(reservation);
  (void)open_all(parts);
  const CUresult result = driver_->cuMemAddressFree(begin, size_bytes);
  if (result != CUDA_SUCCESS) {
    close_all(parts);
    return result;
  }
  address_space_->release(reservation);
  reach_.forget(reservation);
  adopted_.erase(found);
  return result;
}

void Guard::mapped(CUdeviceptr begin, std::size_t size_bytes) {
  ledger_.allocated(abi::GuardFunction::MemMap, begin, size_bytes);
}

CUresult Guard::unmap(CUdeviceptr begin, std::size_t size_bytes) {
  const std::lock_guard lock(mutex_);
  const CUresult result = driver_->cuMemUnmap(begin, size_bytes);
  if (result != CUDA_SUCCESS) return result;
  const os::AddressRange range{begin, begin + size_bytes};
  ledger_.freed_within(range.begin, range.end);
  reach_.forget(range);
  if (is_on()) close_all(guarded_parts(range));
  return result;
}

CUresult Guard::set_access(CUdeviceptr begin, std::size_t size_bytes, const CUmemAccessDesc* rights,
                           std::size_t count) {
  const os::AddressRange range{begin, begin + size_bytes};
  const std::lock_guard lock(mutex_);
  const auto parts = guarded_parts(range);
  CUresult result = CUDA_ERROR_OUT_OF_MEMORY;
  if (open_all(parts)) result = driver_->cuMemSetAccess(begin, size_bytes, rights, count);
  for (std::size_t i = 0; result == CUDA_SUCCESS && i < count; ++i) reach_.note(range, rights[i]);
  // Guards all of it again where the driver refused, and what lost its last rights where it did not.
  if (is_on()) close_all(guarded_parts(range));
  return result;
}

}  // namespace firebreak::guard
