// SPDX-License-Identifier: Apache-2.0
#include "inject/engine/held_stream.h"

#include <atomic>
#include <cstdint>
#include <utility>

namespace firebreak::inject {

Result<HeldStream> HeldStream::create(const cuda::Driver& driver) {
  auto flag = cuda::PinnedBuffer::allocate(driver, sizeof(std::uint32_t));
  if (!flag) return propagate(flag);
  auto stream = cuda::Stream::create(driver);
  if (!stream) return propagate(stream);
  return HeldStream(std::move(*flag), std::move(*stream));
}

CUresult HeldStream::hold() const {
  return stream_.driver()->cuStreamWaitValue32(stream_.handle(), flag_.device_address(), 1,
                                               CU_STREAM_WAIT_VALUE_GEQ);
}

void HeldStream::release() const {
  auto* word = reinterpret_cast<std::uint32_t*>(flag_.data());
  std::atomic_ref<std::uint32_t>(*word).store(1, std::memory_order_release);
}

}  // namespace firebreak::inject
