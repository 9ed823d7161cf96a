// SPDX-License-Identifier: Apache-2.0
#include "softgpu/driver/shared_memory.h"

#include <algorithm>
#include <cstring>
#include <utility>

#include "ground/os/real_kernel.h"
#include "ground/os/self.h"

namespace firebreak::softgpu::driver {
namespace {

/// A handle says this.
struct Content {
  static constexpr std::uint32_t magic_number = 0x53494246;  // "FBIS"
  std::uint32_t magic = magic_number;
  std::int32_t pid = 0;
  std::int32_t descriptor = -1;
  std::uint32_t padding = 0;
  std::uint64_t offset_bytes = 0;
};
static_assert(sizeof(Content) <= sizeof(CUipcMemHandle));

}  // namespace

Answer<CUipcMemHandle> SharedMemory::share(std::uint64_t begin) {
  const auto backing = memory_.backing(begin);
  if (!backing) return refuse(backing.error());
  const std::lock_guard lock(mutex_);
  std::erase_if(shared_, [](const Shared& shared) { return shared.memory.expired(); });
  auto known = std::ranges::find_if(
      shared_, [&](const Shared& shared) { return shared.memory.lock() == backing->memory; });
  if (known == shared_.end()) {
    auto descriptor = backing->memory->export_descriptor();
    if (!descriptor) return refuse(descriptor.error());
    known = shared_.insert(shared_.end(), {backing->memory, std::move(*descriptor)});
  }
  Content content;
  content.pid = os::own_pid();
  content.descriptor = known->descriptor.get();
  content.offset_bytes = backing->offset_bytes;
  CUipcMemHandle handle{};
  std::memcpy(&handle, &content, sizeof(content));
  return handle;
}

Answer<std::uint64_t> SharedMemory::open(const CUipcMemHandle& handle) {
  Content content;
  std::memcpy(static_cast<void*>(&content), &handle, sizeof(content));
  if (content.magic != Content::magic_number) return refuse(CUDA_ERROR_INVALID_VALUE);
  if (content.pid == os::own_pid()) return refuse(CUDA_ERROR_INVALID_CONTEXT);
  os::RealKernel kernel;
  const auto process = kernel.pidfd_open(content.pid);
  if (!process) return refuse(CUDA_ERROR_INVALID_VALUE);
  const auto descriptor = kernel.pidfd_getfd(*process, content.descriptor, "/memfd:");
  if (!descriptor) return refuse(CUDA_ERROR_INVALID_VALUE);
  const auto memory = PhysicalMemory::import(descriptor->get());
  if (!memory) return refuse(memory.error());
  if (content.offset_bytes >= (*memory)->size_bytes()) return refuse(CUDA_ERROR_INVALID_VALUE);
  const auto range = addresses_.take((*memory)->size_bytes(), granularity_bytes, 0);
  if (!range) return refuse(CUDA_ERROR_OUT_OF_MEMORY);
  if (!space_.map({range->begin, range->end(), (*memory)->host(), PageAccess::ReadWrite, *memory})) {
    addresses_.give(range->begin, range->size_bytes);
    return refuse(CUDA_ERROR_OUT_OF_MEMORY);
  }
  const std::lock_guard lock(mutex_);
  opened_[range->begin + content.offset_bytes] = *range;
  return range->begin + content.offset_bytes;
}

CUresult SharedMemory::close(std::uint64_t begin) {
  const std::lock_guard lock(mutex_);
  const auto found = opened_.find(begin);
  if (found == opened_.end()) return CUDA_ERROR_INVALID_VALUE;
  space_.unmap(found->second.begin, found->second.size_bytes);
  addresses_.give(found->second.begin, found->second.size_bytes);
  opened_.erase(found);
  return CUDA_SUCCESS;
}

}  // namespace firebreak::softgpu::driver
