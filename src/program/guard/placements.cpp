// SPDX-License-Identifier: Apache-2.0
/// Allocations that lie where the driver has put them: managed memory, pools, pinned memory, and memory of
/// cuMemAlloc that the guard has no place for. The free addresses around them are guard ranges as well.
#include "program/guard/guard.h"

namespace firebreak::guard {

void Guard::placed(abi::GuardFunction function, CUdeviceptr begin, std::size_t size_bytes) {
  ledger_.allocated(function, begin, size_bytes);
  CUcontext context = nullptr;
  (void)driver_->cuCtxGetCurrent(&context);
  {
    const std::lock_guard lock(mutex_);
    placed_[begin] = home_of(context);
  }
  if (is_on()) address_space_->surround({begin, begin + size_bytes});
}

void Guard::array_made(abi::GuardFunction function, const void* array, std::size_t size_bytes) {
  const auto handle = reinterpret_cast<std::uint64_t>(array);
  ledger_.allocated(function, handle, size_bytes);
  CUcontext context = nullptr;
  (void)driver_->cuCtxGetCurrent(&context);
  const std::lock_guard lock(mutex_);
  placed_[handle] = home_of(context);
}

void Guard::displaced(CUdeviceptr begin) {
  {
    const std::lock_guard lock(mutex_);
    placed_.erase(begin);
  }
  ledger_.freed(begin);
}

}  // namespace firebreak::guard
