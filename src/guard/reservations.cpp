// SPDX-License-Identifier: Apache-2.0
/// cuMemAddressReserve and what goes with it. The driver does all of it; where the GPU can reach nothing, the
/// addresses are blanket: before a mapping has rights, and again when it is gone.
#include <iterator>

#include "guard/guard.h"

namespace firebreak::guard {

bool Guard::is_adopted(os::AddressRange range) const {
  const auto next = adopted_.upper_bound(range.begin);
  return next != adopted_.begin() && range.end > range.begin && std::prev(next)->second >= range.end;
}

void Guard::reserved(CUdeviceptr begin, std::size_t size_bytes) {
  if (!is_on()) return;
  const std::lock_guard lock(mutex_);
  if (territory_->adopt({begin, begin + size_bytes})) adopted_.emplace(begin, begin + size_bytes);
}

void Guard::about_to_release(CUdeviceptr begin, std::size_t size_bytes) {
  if (!is_on()) return;
  const std::lock_guard lock(mutex_);
  const auto found = adopted_.find(begin);
  if (found == adopted_.end() || found->second != begin + size_bytes) return;
  territory_->release({begin, begin + size_bytes});
  adopted_.erase(found);
}

void Guard::mapped(CUdeviceptr begin, std::size_t size_bytes) {
  ledger_.allocated(abi::GuardFunction::MemMap, begin, size_bytes);
}

void Guard::unmapped(CUdeviceptr begin, std::size_t size_bytes) {
  ledger_.freed_within(begin, begin + size_bytes);
  if (!is_on()) return;
  const std::lock_guard lock(mutex_);
  if (is_adopted({begin, begin + size_bytes})) (void)territory_->close({begin, begin + size_bytes});
}

CUresult Guard::set_access(CUdeviceptr begin, std::size_t size_bytes, const CUmemAccessDesc* rights,
                           std::size_t count) {
  const os::AddressRange range{begin, begin + size_bytes};
  const std::lock_guard lock(mutex_);
  const bool adopted = is_on() && is_adopted(range);
  if (adopted && !territory_->open(range)) return CUDA_ERROR_OUT_OF_MEMORY;
  const CUresult result = driver_->cuMemSetAccess(begin, size_bytes, rights, count);
  const bool unreachable = result != CUDA_SUCCESS || rights->flags == CU_MEM_ACCESS_FLAGS_PROT_NONE;
  if (adopted && unreachable) (void)territory_->close(range);
  return result;
}

}  // namespace firebreak::guard
