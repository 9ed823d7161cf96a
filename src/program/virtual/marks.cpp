// SPDX-License-Identifier: Apache-2.0
#include "program/virtual/marks.h"

namespace firebreak::virtual_driver {
namespace {

/// In the primary context, which an instance has as long as it lives: any other one may end before the words
/// are needed no more.
bool pin(const Instance& instance, void* host, std::size_t size_bytes, unsigned int flags) {
  const cuda::Backend& driver = instance.driver();
  CUcontext before = nullptr;
  if (driver.cuCtxGetCurrent(&before) != CUDA_SUCCESS ||
      driver.cuCtxSetCurrent(instance.primary()) != CUDA_SUCCESS)
    return false;
  const bool is_pinned = driver.cuMemHostRegister_v2(host, size_bytes, flags) == CUDA_SUCCESS;
  return driver.cuCtxSetCurrent(before) == CUDA_SUCCESS && is_pinned;
}

}  // namespace

bool Marks::give_word(Work& work) {
  if (work.mark_word.load() >= 0) return true;
  const std::uint32_t number = words_taken_.load();
  if (number == words_max) return false;
  words_taken_.store(number + 1);
  work.mark_word.store(static_cast<std::int32_t>(number), std::memory_order_release);
  return true;
}

/// The words are pinned once, as memory of the program's is: what comes later gets them with that.
CUdeviceptr Marks::address_in(const Instance& instance) {
  const std::uint64_t wanted = std::uint64_t{instance.life()} + 1;
  if (known_.load(std::memory_order_acquire) == wanted) return address_.load(std::memory_order_acquire);
  constexpr unsigned int flags = CU_MEMHOSTREGISTER_DEVICEMAP | CU_MEMHOSTREGISTER_PORTABLE;
  constexpr std::size_t bytes = words_max * sizeof(std::uint32_t);
  const std::lock_guard lock(mutex_);
  if (words_.data() == nullptr) {
    auto made = os::Mapping::anonymous(bytes);
    if (!made || !pin(instance, made->data(), bytes, flags)) return 0;
    memory_.add_host(made->data(), bytes, flags, instance.slot());
    words_ = std::move(*made);
  }
  CUdeviceptr address = 0;
  if (instance.driver().cuMemHostGetDevicePointer_v2(&address, words_.data(), 0) != CUDA_SUCCESS) return 0;
  address_.store(address, std::memory_order_release);
  known_.store(wanted, std::memory_order_release);
  return address;
}

/// What `queued` says was given to the driver before, so the mark comes behind it: but for what is counted
/// first, while that is under way.
void Marks::put(const Instance& instance, Work& work, CUstream stream, GivenWork& given) {
  const CUdeviceptr address = address_in(instance);
  if (address == 0) return is_off_.store(true);
  {
    const std::lock_guard lock(mutex_);
    if (!give_word(work)) return;
  }
  const std::uint64_t upto = work.queued.load();
  if (work.counted_first.load() != 0) return;
  const CUdeviceptr word_there =
      address + static_cast<std::uint64_t>(work.mark_word.load()) * sizeof(std::uint32_t);
  const CUresult put =
      instance.driver().cuStreamWriteValue32_v2(stream, word_there, static_cast<std::uint32_t>(upto), 0);
  // Who gives something meanwhile may have given it before the mark, and notes it after it. What somebody has
  // given and noted meanwhile the mark does not count: that it has ended nobody knows once the mark is there.
  if (put == CUDA_SUCCESS && work.givers.load() == 1 && work.queued.load() == upto) given.mark(work);
  if (put == CUDA_ERROR_NOT_SUPPORTED || put == CUDA_ERROR_INVALID_VALUE) is_off_.store(true);
}

void Marks::take_up(Work& work) const {
  const std::int32_t number = work.mark_word.load(std::memory_order_acquire);
  if (number < 0) return;
  const std::uint64_t queued = work.queued.load();
  const std::uint32_t behind = static_cast<std::uint32_t>(queued) -
                               word(static_cast<std::size_t>(number)).load(std::memory_order_acquire);
  // A word that is ahead says nothing; nor does one that nothing was marked in yet.
  if (behind <= queued && behind < (std::uint32_t{1} << 31U)) work.end(queued - behind);
}

}  // namespace firebreak::virtual_driver
