// SPDX-License-Identifier: Apache-2.0
#include "softgpu/driver/physical_memory.h"

#include <fcntl.h>

#include <utility>

namespace firebreak::softgpu::driver {

PhysicalMemory::PhysicalMemory(os::Fd fd, os::Mapping mapping, std::shared_ptr<SharedGpu> account)
    : fd_(std::move(fd)), mapping_(std::move(mapping)), account_(std::move(account)) {}

PhysicalMemory::~PhysicalMemory() {
  if (account_) account_->give_memory(size_bytes());
}

Answer<std::shared_ptr<PhysicalMemory>> PhysicalMemory::create(std::shared_ptr<SharedGpu> gpu,
                                                               std::uint64_t size_bytes) {
  if (!gpu->take_memory(size_bytes)) return refuse(CUDA_ERROR_OUT_OF_MEMORY);
  auto fd = os::create_memory_file("firebreak-softgpu-memory", size_bytes);
  auto mapping = fd ? os::Mapping::of_file(fd->get(), size_bytes, os::Protection::ReadWrite)
                    : Result<os::Mapping>(propagate(fd));
  if (!mapping) {
    gpu->give_memory(size_bytes);
    return refuse(CUDA_ERROR_OUT_OF_MEMORY);
  }
  return std::shared_ptr<PhysicalMemory>(
      new PhysicalMemory(std::move(*fd), std::move(*mapping), std::move(gpu)));
}

Answer<std::shared_ptr<PhysicalMemory>> PhysicalMemory::import(int fd) {
  const auto size_bytes = os::file_size(fd);
  if (!size_bytes || *size_bytes == 0 || *size_bytes % granularity_bytes != 0 || !os::has_fixed_size(fd)) {
    return refuse(CUDA_ERROR_INVALID_VALUE);
  }
  os::Fd own(::fcntl(fd, F_DUPFD_CLOEXEC, 0));
  if (!own) return refuse(CUDA_ERROR_OPERATING_SYSTEM);
  auto mapping = os::Mapping::of_file(own.get(), *size_bytes, os::Protection::ReadWrite);
  if (!mapping) return refuse(CUDA_ERROR_OUT_OF_MEMORY);
  return std::shared_ptr<PhysicalMemory>(new PhysicalMemory(std::move(own), std::move(*mapping), nullptr));
}

Answer<os::Fd> PhysicalMemory::export_descriptor() const {
  os::Fd copy(::fcntl(fd_.get(), F_DUPFD_CLOEXEC, 0));
  if (!copy) return refuse(CUDA_ERROR_OPERATING_SYSTEM);
  return copy;
}

}  // namespace firebreak::softgpu::driver
