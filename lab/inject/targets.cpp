// SPDX-License-Identifier: Apache-2.0
#include "inject/targets.h"

#include <array>
#include <cstdint>
#include <optional>
#include <utility>

#include "ground/base/units.h"
#include "inject/mapped_target.h"
#include "program/cuda/copy.h"
#include "program/cuda/device_buffer.h"

namespace firebreak::inject {
namespace {

// Larger than what the driver keeps in pools of its own: freeing it takes its pages away.
constexpr std::size_t freed_bytes = 64 * mib;
// 2^31 times eight bytes.
constexpr CUdeviceptr index_reach_bytes = 16 * gib;

Target at(CUdeviceptr address, std::shared_ptr<const void> keep_alive = nullptr) {
  return Target{address, std::move(keep_alive)};
}

/// Fills a few words and waits, so that the GPU's own caches have met the address.
Status use(const cuda::ContextView& context, CUdeviceptr address) {
  const auto filled = cuda::fill_words(context.driver(), address, 1, 32);
  if (!filled) return filled;
  return context.synchronize();
}

/// `distance_bytes` beyond the begin of a granule that has nothing behind it; empty: a granule.
Result<Target> beyond(const cuda::ContextView& context, std::optional<std::size_t> distance_bytes) {
  auto target = map_target(context, cuda::Access::ReadWrite, distance_bytes.value_or(1));
  if (!target) return propagate(target);
  const std::size_t size_bytes = (*target)->memory.size_bytes();
  return at((*target)->address() + distance_bytes.value_or(size_bytes), *target);
}

Result<Target> buffer(const cuda::ContextView& context, std::uint8_t filled_with, CUdeviceptr offset_bytes) {
  auto memory = cuda::DeviceBuffer::allocate(context.driver(), 4096);
  if (!memory) return propagate(memory);
  const auto filled =
      cuda::fill_bytes(context.driver(), memory->address(), filled_with, memory->size_bytes());
  if (!filled) return propagate(filled);
  const auto idle = context.synchronize();
  if (!idle) return propagate(idle);
  const CUdeviceptr address = memory->address() + offset_bytes;
  return at(address, std::make_shared<const cuda::DeviceBuffer>(std::move(*memory)));
}

/// Takes a place so far from the begin of a large allocation that stays; before it where the distance wraps.
Result<Target> beside_allocation(const cuda::ContextView& context, CUdeviceptr distance_bytes) {
  auto memory = cuda::DeviceBuffer::allocate(context.driver(), freed_bytes);
  if (!memory) return propagate(memory);
  const CUdeviceptr address = memory->address() + distance_bytes;
  return at(address, std::make_shared<const cuda::DeviceBuffer>(std::move(*memory)));
}

}  // namespace

Result<Target> unmapped_address(const cuda::ContextView&, const Options& options) {
  return at(options.stray_address.value_or(default_stray_address));
}

Result<Target> low_address(const cuda::ContextView&, const Options& options) {
  return at(options.stray_address.value_or(truncated_stray_address));
}

Result<Target> far_past_end(const cuda::ContextView& context, const Options&) {
  return beside_allocation(context, freed_bytes + index_reach_bytes);
}

Result<Target> far_before_begin(const cuda::ContextView& context, const Options&) {
  return beside_allocation(context, CUdeviceptr{0} - index_reach_bytes);
}

Result<Target> next_page(const cuda::ContextView& context, const Options&) { return beyond(context, {}); }

Result<Target> one_gib_beyond(const cuda::ContextView& context, const Options&) {
  return beyond(context, gib);
}

Result<Target> read_only_memory(const cuda::ContextView& context, const Options&) {
  auto target = map_target(context, cuda::Access::ReadOnly);
  if (!target) return propagate(target);
  return at((*target)->address(), *target);
}

Result<Target> memory_without_rights(const cuda::ContextView& context, const Options&) {
  auto target = map_target(context, std::nullopt);
  if (!target) return propagate(target);
  return at((*target)->address(), *target);
}

Result<Target> unmapped_memory(const cuda::ContextView& context, const Options&) {
  auto target = map_target(context, cuda::Access::ReadWrite);
  if (!target) return propagate(target);
  const auto used = use(context, (*target)->address());
  if (!used) return propagate(used);
  (*target)->mapping.reset();
  return at((*target)->address(), *target);
}

Result<Target> freed_memory(const cuda::ContextView& context, const Options&) {
  const auto memory = cuda::DeviceBuffer::allocate(context.driver(), freed_bytes);
  if (!memory) return propagate(memory);
  const auto used = use(context, memory->address());
  if (!used) return propagate(used);
  return at(memory->address());
}

Result<Target> host_memory(const cuda::ContextView& context, const Options&) {
  const auto device = context.device();
  if (!device) return propagate(device);
  const auto reaches_host = device->attribute(CU_DEVICE_ATTRIBUTE_PAGEABLE_MEMORY_ACCESS);
  if (!reaches_host) return propagate(reaches_host);
  if (*reaches_host != 0) {
    return fail(ErrorCode::Unsupported,
                "host-pointer is no fault here: this GPU reaches ordinary host memory");
  }
  const auto memory = std::make_shared<const std::array<char, 4096>>();
  return at(reinterpret_cast<std::uintptr_t>(memory->data()), memory);
}

Result<Target> odd_address(const cuda::ContextView& context, const Options&) { return buffer(context, 0, 1); }

Result<Target> memory_full_of_ones(const cuda::ContextView& context, const Options&) {
  return buffer(context, 0xff, 0);
}

}  // namespace firebreak::inject
