// SPDX-License-Identifier: Apache-2.0
#include "client/gpu_memory.h"

#include "cuda/context.h"
#include "cuda/copy.h"

namespace firebreak::client {

Result<GpuMemory> GpuMemory::map(const cuda::Device& device, std::uint64_t address,
                                 const cuda::PhysicalAllocation& physical) {
  auto reservation = cuda::AddressReservation::reserve_at(physical.driver(), address, physical.size_bytes());
  if (!reservation) return propagate(reservation);
  auto mapping = cuda::Mapping::map(device, address, physical, cuda::Access::ReadWrite);
  if (!mapping) return propagate(mapping);
  return GpuMemory(std::move(*reservation), std::move(*mapping));
}

Result<GpuMemory::Created> GpuMemory::create(const cuda::Device& device, std::uint64_t address,
                                             std::uint64_t size_bytes) {
  auto physical = cuda::PhysicalAllocation::create(device, size_bytes);
  if (!physical) return propagate(physical);
  auto descriptor = physical->export_descriptor();
  if (!descriptor) return propagate(descriptor);
  os::Fd owned(*descriptor);
  auto memory = map(device, address, *physical);
  if (!memory) return propagate(memory);
  const cuda::Driver& driver = physical->driver();
  if (auto zeroed = cuda::fill_words(driver, address, 0, size_bytes / 4); !zeroed) return propagate(zeroed);
  auto context = cuda::ContextView::current(driver);
  if (!context) return propagate(context);
  // A memset returns before it is done; the tenant's own streams do not wait for it.
  if (auto done = context->synchronize(); !done) return propagate(done);
  return Created{std::move(*memory), std::move(owned)};
}

Result<GpuMemory> GpuMemory::import_at(const cuda::Device& device, std::uint64_t address,
                                       std::uint64_t size_bytes, int descriptor) {
  auto physical = cuda::PhysicalAllocation::import_descriptor(device.driver(), descriptor, size_bytes);
  if (!physical) return propagate(physical);
  return map(device, address, *physical);
}

}  // namespace firebreak::client
