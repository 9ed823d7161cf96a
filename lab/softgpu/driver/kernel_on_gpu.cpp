// SPDX-License-Identifier: Apache-2.0
#include "softgpu/driver/kernel_on_gpu.h"

#include <chrono>
#include <utility>

namespace firebreak::softgpu::driver {

namespace {
/// Nobody is woken by a turn.
constexpr std::chrono::milliseconds look_again(1);
}  // namespace

KernelOnGpu::KernelOnGpu(GpuControl& control)
    : control_(control), came_later_(control.domain().is_held()), turn_began_ns_(now_ns()) {}

void KernelOnGpu::take_turns() {
  const std::int64_t now = now_ns();
  if (now - turn_began_ns_ < control_.halt_rules().turn_ns) return;
  turn_began_ns_ = now;
  control_.gpu().take_turn(control_.domain().owner());
}

bool KernelOnGpu::is_halted(std::uint64_t block) {
  take_turns();
  return stands_still(block);
}

bool KernelOnGpu::stands_still(std::uint64_t block) const {
  if (came_later_) return false;
  return softgpu::is_halted(control_.gpu(), control_.domain(), control_.halt_rules(), multiprocessor(block));
}

bool KernelOnGpu::wait(std::uint64_t block) {
  if (!std::exchange(stood_still_, true)) control_.gpu().count_halted_kernel();
  while (true) {
    const std::uint32_t seen = control_.gpu().wake().value();
    if (control_.stopped()) return false;
    if (!stands_still(block)) break;
    control_.gpu().wake().wait(seen, look_again);
  }
  const auto hold = control_.domain().hold();
  if (hold && control_.gpu().switches() != hold->switches) control_.gpu().count_thawed_kernel();
  return true;
}

}  // namespace firebreak::softgpu::driver
