// SPDX-License-Identifier: Apache-2.0
#include "softgpu/machine/wake_word.h"

#include "ground/os/memory.h"

namespace firebreak::softgpu {

void WakeWord::wake_all() {
  word_.fetch_add(1, std::memory_order_acq_rel);
  os::futex_wake(word_);
}

void WakeWord::wait(std::uint32_t seen, std::chrono::nanoseconds timeout) const {
  if (timeout.count() > 0) os::futex_wait(word_, seen, timeout);
}

}  // namespace firebreak::softgpu
