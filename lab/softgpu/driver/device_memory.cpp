// SPDX-License-Identifier: Apache-2.0
#include "softgpu/driver/device_memory.h"

#include <iterator>
#include <utility>
#include <vector>

#include "ground/base/units.h"
#include "ground/os/memory.h"

namespace firebreak::softgpu::driver {

DeviceMemory::DeviceMemory(std::shared_ptr<SharedGpu> gpu, UvmSpace& space, DriverAddresses& addresses)
    : gpu_(std::move(gpu)), space_(space), addresses_(addresses) {}

Answer<std::uint64_t> DeviceMemory::allocate(std::uint64_t size_bytes, CUcontext context) {
  if (size_bytes == 0) return refuse(CUDA_ERROR_INVALID_VALUE);
  if (size_bytes > gpu_->total_bytes()) return refuse(CUDA_ERROR_OUT_OF_MEMORY);
  const std::uint64_t rounded_bytes = round_up(size_bytes, alignment_bytes);
  const std::lock_guard lock(mutex_);
  std::optional<std::uint64_t> begin;
  for (auto& [address, chunk] : chunks_) {
    begin = cut(chunk, rounded_bytes);
    if (begin) break;
  }
  if (!begin) {
    auto chunk = add_chunk(round_up(size_bytes, granularity_bytes));
    if (!chunk) return refuse(chunk.error());
    begin = cut(**chunk, rounded_bytes);
  }
  allocations_[*begin] = {*begin, size_bytes, AllocationKind::Device, 0, next_id_++, context};
  return *begin;
}

Answer<DeviceMemory::Chunk*> DeviceMemory::add_chunk(std::uint64_t size_bytes) {
  auto memory = PhysicalMemory::create(gpu_, size_bytes);
  if (!memory) return refuse(memory.error());
  const auto range = addresses_.take(size_bytes, granularity_bytes, 0);
  if (!range) return refuse(CUDA_ERROR_OUT_OF_MEMORY);
  if (!space_.map({range->begin, range->end(), (*memory)->host(), PageAccess::ReadWrite, *memory})) {
    addresses_.give(range->begin, range->size_bytes);
    return refuse(CUDA_ERROR_OUT_OF_MEMORY);
  }
  Chunk& chunk = chunks_[range->begin];
  chunk = {*range, std::move(*memory), {{range->begin, range->size_bytes}}};
  return &chunk;
}

std::optional<std::uint64_t> DeviceMemory::cut(Chunk& chunk, std::uint64_t size_bytes) {
  for (auto piece = chunk.free_pieces.begin(); piece != chunk.free_pieces.end(); ++piece) {
    const auto [begin, piece_bytes] = *piece;
    if (piece_bytes < size_bytes) continue;
    chunk.free_pieces.erase(piece);
    if (piece_bytes > size_bytes) chunk.free_pieces[begin + size_bytes] = piece_bytes - size_bytes;
    return begin;
  }
  return std::nullopt;
}

void DeviceMemory::give_back(std::uint64_t begin, std::uint64_t size_bytes) {
  const auto owner = std::prev(chunks_.upper_bound(begin));
  Chunk& chunk = owner->second;
  auto piece = chunk.free_pieces.emplace(begin, size_bytes).first;
  if (const auto next = std::next(piece);
      next != chunk.free_pieces.end() && next->first == begin + size_bytes) {
    piece->second += next->second;
    chunk.free_pieces.erase(next);
  }
  if (piece != chunk.free_pieces.begin()) {
    const auto before = std::prev(piece);
    if (before->first + before->second == begin) {
      before->second += piece->second;
      chunk.free_pieces.erase(piece);
    }
  }
  if (chunk.free_pieces.begin()->second != chunk.range.size_bytes) return;
  space_.unmap(chunk.range.begin, chunk.range.size_bytes);
  addresses_.give(chunk.range.begin, chunk.range.size_bytes);
  chunks_.erase(owner);
}

Answer<void*> DeviceMemory::remember_host(Allocation allocation, std::byte* host,
                                          std::shared_ptr<void> owner) {
  const std::lock_guard lock(mutex_);
  const std::uint64_t page_bytes = os::page_size();
  const std::uint64_t begin = allocation.begin & ~(page_bytes - 1);
  const std::uint64_t end = round_up(allocation.begin + allocation.size_bytes, page_bytes);
  std::byte* first_page = host - (allocation.begin - begin);
  if (!space_.map({begin, end, first_page, PageAccess::ReadWrite, std::move(owner)})) {
    return refuse(CUDA_ERROR_HOST_MEMORY_ALREADY_REGISTERED);
  }
  allocation.id = next_id_++;
  allocations_[allocation.begin] = allocation;
  return host;
}

Answer<void*> DeviceMemory::allocate_host(std::uint64_t size_bytes, AllocationKind kind, unsigned int flags,
                                          CUcontext context) {
  if (size_bytes == 0) return refuse(CUDA_ERROR_INVALID_VALUE);
  if (size_bytes > AddressRanges::highest) return refuse(CUDA_ERROR_OUT_OF_MEMORY);
  auto mapping = os::Mapping::anonymous(round_up(size_bytes, os::page_size()));
  if (!mapping) return refuse(CUDA_ERROR_OUT_OF_MEMORY);
  auto owner = std::make_shared<os::Mapping>(std::move(*mapping));
  std::byte* host = owner->bytes().data();
  return remember_host({reinterpret_cast<std::uint64_t>(host), size_bytes, kind, flags, 0, context}, host,
                       owner);
}

CUresult DeviceMemory::register_host(void* host, std::uint64_t size_bytes, unsigned int flags,
                                     CUcontext context) {
  const auto begin = reinterpret_cast<std::uint64_t>(host);
  if (begin == 0 || size_bytes == 0 || begin + size_bytes < begin) return CUDA_ERROR_INVALID_VALUE;
  const auto done = remember_host({begin, size_bytes, AllocationKind::HostRegistered, flags, 0, context},
                                  static_cast<std::byte*>(host), nullptr);
  return done ? CUDA_SUCCESS : done.error();
}

CUresult DeviceMemory::free(std::uint64_t begin, AllocationKind kind) {
  const std::lock_guard lock(mutex_);
  const auto found = allocations_.find(begin);
  if (found == allocations_.end() || found->second.kind != kind) {
    return kind == AllocationKind::HostRegistered ? CUDA_ERROR_HOST_MEMORY_NOT_REGISTERED
                                                  : CUDA_ERROR_INVALID_VALUE;
  }
  const Allocation allocation = found->second;
  allocations_.erase(found);
  if (kind == AllocationKind::Device) {
    give_back(begin, round_up(allocation.size_bytes, alignment_bytes));
    return CUDA_SUCCESS;
  }
  const std::uint64_t first_page = begin & ~(os::page_size() - 1);
  space_.unmap(first_page, round_up(begin + allocation.size_bytes, os::page_size()) - first_page);
  return CUDA_SUCCESS;
}

void DeviceMemory::free_all_of(CUcontext context) {
  std::vector<Allocation> gone;
  {
    const std::lock_guard lock(mutex_);
    for (const auto& [begin, allocation] : allocations_) {
      if (allocation.context == context) gone.push_back(allocation);
    }
  }
  for (const Allocation& allocation : gone) free(allocation.begin, allocation.kind);
}

std::optional<Allocation> DeviceMemory::find(std::uint64_t address) const {
  const std::lock_guard lock(mutex_);
  const auto after = allocations_.upper_bound(address);
  if (after == allocations_.begin()) return std::nullopt;
  const Allocation& allocation = std::prev(after)->second;
  if (!allocation.contains(address)) return std::nullopt;
  return allocation;
}

Answer<Allocation> DeviceMemory::find_exact(std::uint64_t begin) const {
  const auto allocation = find(begin);
  if (!allocation || allocation->begin != begin) return refuse(CUDA_ERROR_INVALID_VALUE);
  return *allocation;
}

Answer<DeviceMemory::Backing> DeviceMemory::backing(std::uint64_t begin) const {
  const auto allocation = find_exact(begin);
  if (!allocation || allocation->kind != AllocationKind::Device) return refuse(CUDA_ERROR_INVALID_VALUE);
  const std::lock_guard lock(mutex_);
  const auto after = chunks_.upper_bound(begin);
  if (after == chunks_.begin()) return refuse(CUDA_ERROR_INVALID_VALUE);
  const Chunk& chunk = std::prev(after)->second;
  return Backing{chunk.memory, begin - chunk.range.begin};
}

}  // namespace firebreak::softgpu::driver
