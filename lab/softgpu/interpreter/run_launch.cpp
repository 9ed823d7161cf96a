// SPDX-License-Identifier: Apache-2.0
#include <cassert>
#include <chrono>
#include <thread>

#include "softgpu/interpreter/block.h"
#include "softgpu/interpreter/interpreter.h"
#include "softgpu/interpreter/loaded_module.h"

namespace firebreak::softgpu {

namespace {

/// How long to wait when no thread can go on: a barrier nobody will complete. Such a kernel hangs until it is
/// stopped.
constexpr auto hang_poll = std::chrono::milliseconds(1);

enum class BlockEnd { Finished, Stopped, Faulted };

bool asked_to_stop(ExecutionControl& control) {
  return control.attention.load(std::memory_order_acquire) != 0 && control.should_stop();
}

BlockEnd run_block(Block& block, LaunchState& state, ExecutionControl& control) {
  while (!block.finished()) {
    if (asked_to_stop(control)) return BlockEnd::Stopped;
    const bool progress = block.run_slice();
    if (state.fault) return BlockEnd::Faulted;
    if (!progress && !block.can_run()) std::this_thread::sleep_for(hang_poll);
  }
  return BlockEnd::Finished;
}

LaunchState make_state(const Launch& launch, const DecodedKernel& kernel, const AddressSpace& memory,
                       const ExecutionControl& control) {
  LaunchState state(kernel.code(), kernel.entry(), memory);
  state.parameters = launch.parameters;
  state.parameters.resize(std::max<std::size_t>(kernel.parameter_bytes(), 16));
  const std::uint64_t stack_bytes = (launch.stack_limit_bytes + 15U) / 16U * 16U;
  state.local_bytes = kernel.entry().local_bytes + static_cast<std::uint32_t>(stack_bytes);
  state.attention = &control.attention;
  return state;
}

}  // namespace

LaunchOutcome run_launch(const Launch& launch, const AddressSpace& memory, ExecutionControl& control) {
  // Kernels are made by LoadedModule alone, so this is what every one of them is.
  const auto& kernel = static_cast<const DecodedKernel&>(*launch.kernel);
  LaunchState state = make_state(launch, kernel, memory, control);
  Block block(state, launch, kernel.dynamic_shared_offset() + launch.dynamic_shared_bytes);
  for (std::uint32_t z = 0; z < launch.grid.z; ++z) {
    for (std::uint32_t y = 0; y < launch.grid.y; ++y) {
      for (std::uint32_t x = 0; x < launch.grid.x; ++x) {
        block.start({x, y, z});
        const BlockEnd end = run_block(block, state, control);
        if (end == BlockEnd::Faulted) return *std::move(state.fault);
        if (end == BlockEnd::Stopped) return Stopped{};
      }
    }
  }
  return Completed{state.instructions};
}

}  // namespace firebreak::softgpu
