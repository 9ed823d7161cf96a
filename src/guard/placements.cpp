// SPDX-License-Identifier: Apache-2.0
/// Allocations that lie where the driver has put them: managed memory, pools, pinned memory, and memory of
/// cuMemAlloc that the guard has no place for. The free addresses around them are blanket as well.
#include "guard/guard.h"

namespace firebreak::guard {

void Guard::placed(abi::GuardFunction function, CUdeviceptr begin, std::size_t size_bytes) {
  ledger_.allocated(function, begin, size_bytes);
  CUcontext context = nullptr;
  (void)driver_->cuCtxGetCurrent(&context);
  {
    const std::lock_guard lock(mutex_);
    placed_[begin] = context;
  }
  if (is_on()) territory_->surround({begin, begin + size_bytes});
}

void Guard::displaced(CUdeviceptr begin) {
  {
    const std::lock_guard lock(mutex_);
    placed_.erase(begin);
  }
  ledger_.freed(begin);
}

}  // namespace firebreak::guard
