// SPDX-License-Identifier: Apache-2.0
#include <cassert>
#include <chrono>
#include <optional>
#include <thread>
#include <utility>
#include <vector>

#include "softgpu/interpreter/block.h"
#include "softgpu/interpreter/interleaved.h"
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

bool is_halted(BlockGate* gate, std::uint64_t place) { return gate != nullptr && gate->is_halted(place); }

BlockEnd run_block(Block& block, std::uint64_t place, LaunchState& state, ExecutionControl& control,
                   BlockGate* gate) {
  while (!block.finished()) {
    if (asked_to_stop(control)) return BlockEnd::Stopped;
    if (is_halted(gate, place) && !gate->wait(place)) return BlockEnd::Stopped;
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
  state.observer = launch.observer;
  state.is_watched = launch.observer != nullptr;
  return state;
}

}  // namespace

Dimensions block_at(Dimensions grid, std::uint64_t place) {
  const std::uint64_t plane = std::uint64_t{grid.x} * grid.y;
  return {static_cast<std::uint32_t>(place % grid.x), static_cast<std::uint32_t>(place % plane / grid.x),
          static_cast<std::uint32_t>(place / plane)};
}

LaunchOutcome run_launch(const Launch& launch, const AddressSpace& memory, ExecutionControl& control,
                         BlockGate* gate) {
  // Kernels are made by LoadedModule alone, so this is what every one of them is.
  const auto& kernel = static_cast<const DecodedKernel&>(*launch.kernel);
  LaunchState state = make_state(launch, kernel, memory, control);
  const std::uint32_t shared_bytes = kernel.dynamic_shared_offset() + launch.dynamic_shared_bytes;
  if (launch.interleaving) return run_interleaved(launch, shared_bytes, state, control);
  Block block(state, launch, shared_bytes);
  const std::uint64_t count = std::uint64_t{launch.grid.x} * launch.grid.y * launch.grid.z;
  const std::uint64_t threads = std::uint64_t{launch.block.x} * launch.block.y * launch.block.z;
  /// Empty: it has run to its end.
  const auto run = [&](std::uint64_t place) -> std::optional<LaunchOutcome> {
    state.first_thread = place * threads;
    block.start(block_at(launch.grid, place));
    const BlockEnd end = run_block(block, place, state, control, gate);
    if (end == BlockEnd::Stopped || state.is_stopped_by_observer) return Stopped{};
    if (end == BlockEnd::Finished) return std::nullopt;
    state.fault->block = place;
    return *std::move(state.fault);
  };
  std::vector<std::uint64_t> halted;
  for (std::uint64_t i = 0; i < count; ++i) {
    if (is_halted(gate, i)) {
      halted.push_back(i);
    } else if (auto end = run(i)) {
      return *std::move(end);
    }
  }
  for (const std::uint64_t place : halted) {
    if (auto end = run(place)) return *std::move(end);
  }
  return Completed{state.instructions};
}

}  // namespace firebreak::softgpu
