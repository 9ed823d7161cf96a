// SPDX-License-Identifier: Apache-2.0
#include "program/client/gpu_memory.h"

#include "program/cuda/context.h"
#include "program/cuda/copy.h"

namespace firebreak::client {

Result<GpuMemory::Created> GpuMemory::create(const cuda::Device& device, std::uint64_t address,
                                             std::uint64_t size_bytes) {
  auto made = make(device, size_bytes);
  if (!made) return propagate(made);
  auto memory = map_zeroed(device, address, *made);
  if (!memory) return propagate(memory);
  return Created{std::move(*memory), std::move(made->descriptor)};
}

Result<GpuMemory::Made> GpuMemory::make(const cuda::Device& device, std::uint64_t size_bytes) {
  auto physical = cuda::PhysicalAllocation::create(device, size_bytes);
  if (!physical) return propagate(physical);
  auto descriptor = physical->export_descriptor();
  if (!descriptor) return propagate(descriptor);
  return Made{std::move(*physical), os::Fd(*descriptor)};
}

Result<GpuMemory> GpuMemory::map_zeroed(const cuda::Device& device, std::uint64_t address, const Made& made) {
  auto mapping = cuda::Mapping::map(device, address, made.physical, cuda::Access::ReadWrite);
  if (!mapping) return propagate(mapping);
  const cuda::Driver& driver = made.physical.driver();
  const std::size_t words = made.physical.size_bytes() / 4;
  if (auto zeroed = cuda::fill_words(driver, address, 0, words); !zeroed) return propagate(zeroed);
  auto context = cuda::ContextView::current(driver);
  if (!context) return propagate(context);
  // A memset returns before it is done; the tenant's own streams do not wait for it.
  if (auto done = context->synchronize(); !done) return propagate(done);
  return GpuMemory(std::move(*mapping));
}

Result<GpuMemory> GpuMemory::import_at(const cuda::Device& device, std::uint64_t address,
                                       std::uint64_t size_bytes, cuda::Access access, int descriptor) {
  auto physical = cuda::PhysicalAllocation::import_descriptor(device.driver(), descriptor, size_bytes);
  if (!physical) return propagate(physical);
  auto mapping = cuda::Mapping::map(device, address, *physical, access);
  if (!mapping) return propagate(mapping);
  return GpuMemory(std::move(*mapping));
}

}  // namespace firebreak::client
