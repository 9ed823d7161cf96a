// SPDX-License-Identifier: Apache-2.0
/// cuMemAlloc and its kin: memory of our own making, each large piece with guard ranges in front of it and
/// directly behind its end.
#include <algorithm>
#include <chrono>
#include <thread>

#include "program/guard/guard.h"

namespace firebreak::guard {
namespace {

/// Smaller ones share 2 MiB, as they do with the driver itself.
constexpr std::size_t slab_limit_bytes = mib;
/// What cuMemAllocPitch promises to align rows to; the driver's own answer is the same on every GPU that has
/// UVM faults (CU_DEVICE_ATTRIBUTE_TEXTURE_PITCH_ALIGNMENT is smaller).
constexpr std::size_t pitch_alignment_bytes = 512;

/// There is no other memory, so the caller would have an error now.
constexpr std::chrono::milliseconds look_again(1);
constexpr int looks_max = 5'000;

CUmemAllocationProp memory_of(CUdevice device) {
  CUmemAllocationProp properties{};
  properties.type = CU_MEM_ALLOCATION_TYPE_PINNED;
  properties.location = {CU_MEM_LOCATION_TYPE_DEVICE, device};
  properties.allocFlags.gpuDirectRDMACapable = 1;
  return properties;
}

}  // namespace

CUresult Guard::back_with_memory(os::AddressRange range) {
  CUdevice device = 0;
  CUresult result = driver_->cuCtxGetDevice(&device);
  if (result != CUDA_SUCCESS) return result;
  CUmemAllocationProp properties = memory_of(device);
  CUmemGenericAllocationHandle handle = 0;
  result = driver_->cuMemCreate(&handle, range.size_bytes(), &properties, 0);
  if (result == CUDA_ERROR_INVALID_VALUE || result == CUDA_ERROR_NOT_SUPPORTED) {
    properties.allocFlags.gpuDirectRDMACapable = 0;
    result = driver_->cuMemCreate(&handle, range.size_bytes(), &properties, 0);
  }
  if (result != CUDA_SUCCESS) return result;
  result = driver_->cuMemMap(range.begin, range.size_bytes(), 0, handle, 0);
  driver_->cuMemRelease(handle);  // the mapping keeps the memory
  if (result != CUDA_SUCCESS) return result;
  const CUmemAccessDesc rights{properties.location, CU_MEM_ACCESS_FLAGS_PROT_READWRITE};
  result = driver_->cuMemSetAccess(range.begin, range.size_bytes(), &rights, 1);
  if (result != CUDA_SUCCESS) driver_->cuMemUnmap(range.begin, range.size_bytes());
  return result;
}

void Guard::take_memory_away(os::AddressRange range) {
  driver_->cuMemUnmap(range.begin, range.size_bytes());
  (void)address_space_->close(range);
  address_space_->give(range.begin);
}

CUresult Guard::make_block(std::size_t size_bytes, os::AddressRange* block) {
  const auto range = address_space_->take(size_bytes);
  if (!range) return CUDA_ERROR_OUT_OF_MEMORY;
  CUresult result = CUDA_ERROR_OUT_OF_MEMORY;
  if (address_space_->open(*range)) {
    result = back_with_memory(*range);
    if (result != CUDA_SUCCESS) (void)address_space_->close(*range);
  }
  if (result != CUDA_SUCCESS) address_space_->give(range->begin);
  *block = *range;
  return result;
}

CUresult Guard::allocate_large(std::size_t size_bytes, Allocation* allocation, CUdeviceptr* pointer) {
  const CUresult result = make_block(size_bytes, &allocation->block);
  if (result != CUDA_SUCCESS) return result;
  // At the block's end, so that who runs past the allocation's end meets the guard ranges at once.
  *pointer = allocation->block.end - round_up(size_bytes, Slabs::alignment_bytes);
  return result;
}

CUresult Guard::allocate_small(std::size_t size_bytes, CUcontext context, Allocation* allocation,
                               CUdeviceptr* pointer) {
  Slabs& slabs = slabs_[context];
  allocation->in_slab = true;
  auto address = slabs.take(size_bytes);
  if (!address) {
    os::AddressRange block;
    const CUresult result = make_block(Arena::granule_bytes, &block);
    if (result != CUDA_SUCCESS) return result;
    slabs.add(block.begin, block.size_bytes());
    address = slabs.take(size_bytes);
  }
  *pointer = *address;
  return CUDA_SUCCESS;
}

CUresult Guard::allocate_ours(std::size_t size_bytes, CUcontext context, Allocation* allocation,
                              CUdeviceptr* address) {
  return size_bytes < slab_limit_bytes ? allocate_small(size_bytes, context, allocation, address)
                                       : allocate_large(size_bytes, allocation, address);
}

CUresult Guard::allocate(abi::GuardFunction function, CUdeviceptr* pointer, std::size_t size_bytes) {
  CUcontext context = nullptr;
  const bool ours = allocates_.load(std::memory_order_acquire) && pointer != nullptr && size_bytes != 0 &&
                    driver_->cuCtxGetCurrent(&context) == CUDA_SUCCESS && context != nullptr;
  CUdeviceptr address = 0;
  if (ours) {
    std::unique_lock lock(mutex_);
    context = home_of(context);
    if (is_capturing()) {
      if (const CUresult forbidden = ask_about_captures(context); forbidden != CUDA_SUCCESS) return forbidden;
    } else {
      let_go();
    }
    Allocation allocation{size_bytes, {}, false, context};
    CUresult result = allocate_ours(size_bytes, context, &allocation, &address);
    // What was freed while streams were captured comes back between two captures.
    for (int looks = 0; result == CUDA_ERROR_OUT_OF_MEMORY && !leaving_.empty() && looks < looks_max;
         ++looks) {
      if (wait_and_let_go()) {
        result = allocate_ours(size_bytes, context, &allocation, &address);
        break;
      }
      lock.unlock();
      std::this_thread::sleep_for(look_again);
      lock.lock();
    }
    if (result == CUDA_SUCCESS) {
      allocation.id = ++last_id_;
      allocations_.emplace(address, allocation);
      ledger_.allocated(function, address, size_bytes);
      *pointer = address;
      return result;
    }
  }
  const CUresult result = driver_->cuMemAlloc(pointer, size_bytes);
  if (result == CUDA_SUCCESS) placed(function, *pointer, size_bytes);
  return result;
}

CUresult Guard::allocate_pitch(CUdeviceptr* pointer, std::size_t* pitch_bytes, std::size_t width_bytes,
                               std::size_t height, unsigned int element_bytes) {
  const bool makes_sense = element_bytes == 4 || element_bytes == 8 || element_bytes == 16;
  if (pitch_bytes == nullptr || width_bytes == 0 || height == 0 || !makes_sense)
    return CUDA_ERROR_INVALID_VALUE;
  const std::size_t pitch = round_up(width_bytes, pitch_alignment_bytes);
  if (pitch < width_bytes || height > ~std::size_t{0} / pitch) return CUDA_ERROR_INVALID_VALUE;
  const CUresult result = allocate(abi::GuardFunction::MemAllocPitch, pointer, pitch * height);
  if (result == CUDA_SUCCESS) *pitch_bytes = pitch;
  return result;
}

std::optional<Guard::Range> Guard::find(CUdeviceptr pointer) const {
  const std::lock_guard lock(mutex_);
  const auto next = allocations_.upper_bound(pointer);
  if (next == allocations_.begin()) return {};
  const auto found = std::prev(next);
  if (pointer - found->first >= found->second.size_bytes) return {};
  return Range{found->first, found->second.size_bytes, found->second.context, found->second.id};
}

CUcontext Guard::home_of(CUcontext context) const {
  for (const auto& [handle, green] : greens_) {
    const auto primary = primaries_.find(green.device);
    if (green.context == context && context != nullptr && primary != primaries_.end()) return primary->second;
  }
  return context;
}

void Guard::note_green(CUgreenCtx green, CUdevice device) {
  const std::lock_guard lock(mutex_);
  greens_[green].device = device;
}

void Guard::note_green_context(CUgreenCtx green, CUcontext context) {
  const std::lock_guard lock(mutex_);
  const auto found = greens_.find(green);
  if (found != greens_.end()) found->second.context = context;
}

std::optional<CUdevice> Guard::forget_green(CUgreenCtx green) {
  const std::lock_guard lock(mutex_);
  const auto found = greens_.find(green);
  if (found == greens_.end()) return {};
  const CUdevice device = found->second.device;
  greens_.erase(found);
  return device;
}

void Guard::note_primary(CUdevice device, CUcontext context) {
  const std::lock_guard lock(mutex_);
  primaries_[device] = context;
}

CUcontext Guard::forget_primary(CUdevice device) {
  CUcontext gone = nullptr;
  {
    const std::lock_guard lock(mutex_);
    const auto found = primaries_.find(device);
    if (found == primaries_.end()) return nullptr;
    gone = found->second;
    primaries_.erase(found);
  }
  forget_context(gone);
  return gone;
}

}  // namespace firebreak::guard
