// SPDX-License-Identifier: Apache-2.0
#include "program/client/gpu_memory.h"

#include "program/cuda/context.h"
#include "program/cuda/copy.h"

namespace firebreak::client {

Result<GpuMemory::Created> GpuMemory::create(const cuda::Device& device, std::uint64_t address,
                                             std::uint64_t size_bytes) {
  auto physical = cuda::PhysicalAllocation::create(device, size_bytes);
  if (!physical) return propagate(physical);
  auto descriptor = physical->export_descriptor();
  if (!descriptor) return propagate(descriptor);
  os::Fd owned(*descriptor);
  auto mapping = cuda::Mapping::map(device, address, *physical, cuda::Access::ReadWrite);
  if (!mapping) return propagate(mapping);
  const cuda::Driver& driver = physical->driver();
  if (auto zeroed = cuda::fill_words(driver, address, 0, size_bytes / 4); !zeroed) return propagate(zeroed);
  auto context = cuda::ContextView::current(driver);
  if (!context) return propagate(context);
  // A memset returns before it is done; the tenant's own streams do not wait for it.
  if (auto done = context->synchronize(); !done) return propagate(done);
  return Created{GpuMemory(std::move(*mapping)), std::move(owned)};
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
