// SPDX-License-Identifier: Apache-2.0
#include "softgpu/devices/pinned_buffer.h"

#include <sys/mman.h>

#include <utility>

#include "ground/base/units.h"
#include "ground/os/memory.h"

namespace firebreak::softgpu {
namespace {

bool populate(void* address, std::size_t size_bytes) {
  return ::madvise(address, size_bytes, MADV_POPULATE_WRITE) == 0;
}

/// This refuses a range that is not mapped for writing to its end, like pinning. Linux before 5.14 cannot
/// tell.
bool is_writable(void* address, std::size_t size_bytes, std::size_t page_bytes) {
  return populate(address, size_bytes) || !populate(address, page_bytes);
}

}  // namespace

std::optional<PinnedBuffer> PinnedBuffer::pin(std::uint64_t address, std::size_t size_bytes) {
  const std::size_t page_bytes = os::page_size();
  if (address == 0 || address % page_bytes != 0 || size_bytes == 0) return std::nullopt;
  const std::size_t mapped_bytes = round_up(size_bytes, page_bytes);
  if (!is_writable(reinterpret_cast<void*>(address), mapped_bytes, page_bytes)) return std::nullopt;
  // An old size of 0 makes a second mapping of the same shared pages.
  void* copy = ::mremap(reinterpret_cast<void*>(address), 0, mapped_bytes, MREMAP_MAYMOVE);
  if (copy == MAP_FAILED) return std::nullopt;
  return PinnedBuffer(static_cast<std::byte*>(copy), mapped_bytes);
}

PinnedBuffer::PinnedBuffer(PinnedBuffer&& other) noexcept
    : data_(std::exchange(other.data_, nullptr)), size_bytes_(std::exchange(other.size_bytes_, 0)) {}

PinnedBuffer& PinnedBuffer::operator=(PinnedBuffer&& other) noexcept {
  std::swap(data_, other.data_);
  std::swap(size_bytes_, other.size_bytes_);
  return *this;
}

PinnedBuffer::~PinnedBuffer() {
  if (data_ != nullptr) ::munmap(data_, size_bytes_);
}

}  // namespace firebreak::softgpu
