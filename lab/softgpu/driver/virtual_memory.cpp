// SPDX-License-Identifier: Apache-2.0
#include "softgpu/driver/virtual_memory.h"

#include <algorithm>
#include <iterator>
#include <utility>

namespace firebreak::softgpu::driver {

namespace {

bool whole_pages(std::uint64_t value) { return value % granularity_bytes == 0; }

PageAccess page_access(CUmemAccess_flags flags) {
  switch (flags) {
    case CU_MEM_ACCESS_FLAGS_PROT_READ:
      return PageAccess::ReadOnly;
    case CU_MEM_ACCESS_FLAGS_PROT_READWRITE:
      return PageAccess::ReadWrite;
    default:
      return PageAccess::None;
  }
}

}  // namespace

VirtualMemory::VirtualMemory(std::shared_ptr<SharedGpu> gpu, UvmSpace& space, DriverAddresses& addresses)
    : gpu_(std::move(gpu)), space_(space), addresses_(addresses) {}

Answer<std::uint64_t> VirtualMemory::reserve(std::uint64_t size_bytes, std::uint64_t alignment_bytes,
                                             std::uint64_t hint) {
  const bool power_of_two = (alignment_bytes & (alignment_bytes - 1)) == 0;
  if (size_bytes == 0 || !whole_pages(size_bytes) || !power_of_two) return refuse(CUDA_ERROR_INVALID_VALUE);
  // A fixed address need not be a multiple of the granularity: the lowest one that works is 0x10000.
  const std::uint64_t hint_alignment = alignment_bytes == 0 ? AddressRanges::lowest : alignment_bytes;
  const std::uint64_t alignment = std::max(alignment_bytes, granularity_bytes);
  const bool try_hint = hint != 0 && hint % hint_alignment == 0;
  auto range = try_hint ? addresses_.take(size_bytes, hint_alignment, hint) : std::nullopt;
  if (range && range->begin != hint) {  // the wish was taken: start again with the usual alignment
    addresses_.give(range->begin, range->size_bytes);
    range.reset();
  }
  if (!range) range = addresses_.take(size_bytes, alignment, 0);
  if (!range) return refuse(CUDA_ERROR_OUT_OF_MEMORY);
  const std::lock_guard lock(mutex_);
  reservations_[range->begin] = range->size_bytes;
  return range->begin;
}

CUresult VirtualMemory::release_reservation(std::uint64_t begin, std::uint64_t size_bytes) {
  const std::lock_guard lock(mutex_);
  const auto found = reservations_.find(begin);
  if (found == reservations_.end() || found->second != size_bytes) return CUDA_ERROR_INVALID_VALUE;
  const auto mapping = mappings_.lower_bound(begin);
  if (mapping != mappings_.end() && mapping->first < begin + size_bytes) return CUDA_ERROR_INVALID_VALUE;
  reservations_.erase(found);
  addresses_.give(begin, size_bytes);
  return CUDA_SUCCESS;
}

bool VirtualMemory::is_reserved(std::uint64_t address) const {
  const std::lock_guard lock(mutex_);
  const auto after = reservations_.upper_bound(address);
  if (after == reservations_.begin()) return false;
  const auto [begin, size_bytes] = *std::prev(after);
  return address - begin < size_bytes;
}

CUmemGenericAllocationHandle VirtualMemory::add_handle(std::shared_ptr<PhysicalMemory> memory,
                                                       const CUmemAllocationProp& properties) {
  const std::lock_guard lock(mutex_);
  const CUmemGenericAllocationHandle handle = next_handle_;
  next_handle_ += 0x10;
  handles_[handle] = {std::move(memory), properties, 1};
  return handle;
}

Answer<CUmemGenericAllocationHandle> VirtualMemory::create(std::uint64_t size_bytes,
                                                           const CUmemAllocationProp& properties) {
  if (size_bytes == 0 || !whole_pages(size_bytes)) return refuse(CUDA_ERROR_INVALID_VALUE);
  auto memory = PhysicalMemory::create(gpu_, size_bytes);
  if (!memory) return refuse(memory.error());
  return add_handle(std::move(*memory), properties);
}

CUresult VirtualMemory::release(CUmemGenericAllocationHandle handle) {
  const std::lock_guard lock(mutex_);
  const auto found = handles_.find(handle);
  if (found == handles_.end() || found->second.references == 0) return CUDA_ERROR_INVALID_VALUE;
  --found->second.references;
  forget_if_unused(handle);
  return CUDA_SUCCESS;
}

void VirtualMemory::forget_if_unused(CUmemGenericAllocationHandle handle) {
  const auto found = handles_.find(handle);
  const bool is_mapped =
      std::ranges::any_of(mappings_, [&](const auto& each) { return each.second.handle == handle; });
  if (!is_mapped && found != handles_.end() && found->second.references == 0) handles_.erase(found);
}

Answer<os::Fd> VirtualMemory::export_descriptor(CUmemGenericAllocationHandle handle) const {
  const std::lock_guard lock(mutex_);
  const auto found = handles_.find(handle);
  if (found == handles_.end()) return refuse(CUDA_ERROR_INVALID_VALUE);
  if ((found->second.properties.requestedHandleTypes & CU_MEM_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR) == 0) {
    return refuse(CUDA_ERROR_INVALID_VALUE);
  }
  if (found->second.memory->is_imported()) return refuse(CUDA_ERROR_INVALID_VALUE);  // an H100 answers so
  return found->second.memory->export_descriptor();
}

Answer<CUmemGenericAllocationHandle> VirtualMemory::import_descriptor(int fd) {
  auto memory = PhysicalMemory::import(fd);
  if (!memory) return refuse(memory.error());
  CUmemAllocationProp properties{};
  properties.type = CU_MEM_ALLOCATION_TYPE_PINNED;
  properties.requestedHandleTypes = CU_MEM_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR;
  properties.location = {CU_MEM_LOCATION_TYPE_DEVICE, 0};
  return add_handle(std::move(*memory), properties);
}

Answer<CUmemAllocationProp> VirtualMemory::properties(CUmemGenericAllocationHandle handle) const {
  const std::lock_guard lock(mutex_);
  const auto found = handles_.find(handle);
  if (found == handles_.end()) return refuse(CUDA_ERROR_INVALID_VALUE);
  return found->second.properties;
}

Answer<CUmemGenericAllocationHandle> VirtualMemory::retain(std::uint64_t address) {
  const std::lock_guard lock(mutex_);
  const auto found = mapping_at(address);
  if (found == mappings_.end()) return refuse(CUDA_ERROR_INVALID_VALUE);
  const Mapping& mapping = found->second;
  ++handles_.at(mapping.handle).references;
  return mapping.handle;
}

std::map<std::uint64_t, VirtualMemory::Mapping>::const_iterator VirtualMemory::mapping_at(
    std::uint64_t address) const {
  const auto after = mappings_.upper_bound(address);
  if (after == mappings_.begin()) return mappings_.end();
  const auto found = std::prev(after);
  return address - found->first < found->second.size_bytes ? found : mappings_.end();
}

CUresult VirtualMemory::map(std::uint64_t begin, std::uint64_t size_bytes, std::uint64_t offset_bytes,
                            CUmemGenericAllocationHandle handle) {
  const std::lock_guard lock(mutex_);
  const auto found = handles_.find(handle);
  const auto reservation = reservations_.upper_bound(begin);
  if (found == handles_.end() || reservation == reservations_.begin()) return CUDA_ERROR_INVALID_VALUE;
  const auto [reserved_begin, reserved_bytes] = *std::prev(reservation);
  const std::uint64_t memory_bytes = found->second.memory->size_bytes();
  const bool inside_reservation =
      begin - reserved_begin < reserved_bytes && size_bytes <= reserved_bytes - (begin - reserved_begin);
  if (size_bytes == 0 || !whole_pages(size_bytes) || !whole_pages(offset_bytes) ||
      !whole_pages(begin - reserved_begin) || !inside_reservation) {
    return CUDA_ERROR_INVALID_VALUE;
  }
  const auto next = mappings_.lower_bound(begin);
  const bool next_is_free = next == mappings_.end() || next->first >= begin + size_bytes;
  if (!next_is_free || mapping_at(begin) != mappings_.end()) return CUDA_ERROR_INVALID_VALUE;
  // Memory is mapped whole or not at all, as on an H200.
  if (offset_bytes != 0 || size_bytes != memory_bytes) return CUDA_ERROR_NOT_SUPPORTED;
  mappings_[begin] = {size_bytes,
                      offset_bytes,
                      handle,
                      found->second.memory,
                      found->second.properties,
                      CU_MEM_ACCESS_FLAGS_PROT_NONE};
  return CUDA_SUCCESS;
}

bool VirtualMemory::covered(std::uint64_t begin, std::uint64_t size_bytes) const {
  std::uint64_t next = begin;
  for (auto mapping = mappings_.find(begin); mapping != mappings_.end(); ++mapping) {
    if (mapping->first != next || next >= begin + size_bytes) break;
    next += mapping->second.size_bytes;
  }
  return size_bytes != 0 && next == begin + size_bytes;
}

CUresult VirtualMemory::unmap(std::uint64_t begin, std::uint64_t size_bytes) {
  const std::lock_guard lock(mutex_);
  if (!covered(begin, size_bytes)) return CUDA_ERROR_INVALID_VALUE;
  const auto end = mappings_.lower_bound(begin + size_bytes);
  for (auto mapping = mappings_.find(begin); mapping != end;) {
    give_access(mapping->first, mapping->second, CU_MEM_ACCESS_FLAGS_PROT_NONE);
    const CUmemGenericAllocationHandle handle = mapping->second.handle;
    mapping = mappings_.erase(mapping);
    forget_if_unused(handle);
  }
  return CUDA_SUCCESS;
}

bool VirtualMemory::give_access(std::uint64_t begin, Mapping& mapping, CUmemAccess_flags flags) {
  const PageAccess before = page_access(mapping.flags);
  const PageAccess after = page_access(flags);
  if (before == PageAccess::None && after != PageAccess::None) {
    std::byte* const host = mapping.memory->host() + mapping.offset_bytes;
    if (!space_.map({begin, begin + mapping.size_bytes, host, after, mapping.memory})) return false;
  } else if (before != PageAccess::None && after == PageAccess::None) {
    space_.unmap(begin, mapping.size_bytes);
  } else if (before != after) {
    space_.space().protect(begin, mapping.size_bytes, after);
  }
  mapping.flags = flags;
  return true;
}

CUresult VirtualMemory::set_access(std::uint64_t begin, std::uint64_t size_bytes, CUmemAccess_flags flags) {
  const std::lock_guard lock(mutex_);
  if (!covered(begin, size_bytes)) return CUDA_ERROR_INVALID_VALUE;
  const auto end = mappings_.lower_bound(begin + size_bytes);
  for (auto mapping = mappings_.find(begin); mapping != end; ++mapping) {
    if (!give_access(mapping->first, mapping->second, flags)) return CUDA_ERROR_INVALID_VALUE;
  }
  return CUDA_SUCCESS;
}

Answer<CUmemAccess_flags> VirtualMemory::access(std::uint64_t address) const {
  const std::lock_guard lock(mutex_);
  const auto found = mapping_at(address);
  if (found == mappings_.end()) return refuse(CUDA_ERROR_INVALID_VALUE);
  return found->second.flags;
}

Answer<VirtualMemory::MappedRange> VirtualMemory::find_mapped(std::uint64_t address) const {
  const std::lock_guard lock(mutex_);
  const auto found = mapping_at(address);
  if (found == mappings_.end()) return refuse(CUDA_ERROR_INVALID_VALUE);
  const auto& [begin, mapping] = *found;
  const auto [reserved_begin, reserved_bytes] = *std::prev(reservations_.upper_bound(begin));
  return MappedRange{begin,
                     mapping.size_bytes,
                     reserved_begin,
                     reserved_bytes,
                     mapping.properties.requestedHandleTypes,
                     mapping.flags != CU_MEM_ACCESS_FLAGS_PROT_NONE};
}

}  // namespace firebreak::softgpu::driver
