// SPDX-License-Identifier: Apache-2.0
#include "ground/os/growing_memory.h"

#include <sys/mman.h>

#include <algorithm>
#include <cstring>

#include "ground/base/units.h"

namespace firebreak::os {

GrowingMemory::GrowingMemory(GrowingMemory&& other) noexcept
    : bytes_max_(other.bytes_max_),
      begin_(std::exchange(other.begin_, nullptr)),
      size_bytes_(std::exchange(other.size_bytes_, 0)),
      usable_bytes_(std::exchange(other.usable_bytes_, 0)) {}

GrowingMemory& GrowingMemory::operator=(GrowingMemory&& other) noexcept {
  if (this == &other) return *this;
  clear();
  bytes_max_ = other.bytes_max_;
  begin_ = std::exchange(other.begin_, nullptr);
  size_bytes_ = std::exchange(other.size_bytes_, 0);
  usable_bytes_ = std::exchange(other.usable_bytes_, 0);
  return *this;
}

/// Where the machine has no more, it stays as it is. Linux gives it in large pages where it has some: 150 MB in
/// pages of 4 KiB are 38,000 faults, which took longer than all copies.
void GrowingMemory::make_usable(std::size_t wanted_bytes) {
  constexpr std::size_t step_bytes = 2 * mib;
  if (begin_ == nullptr) {
    void* const got =
        ::mmap(nullptr, bytes_max_, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    if (got == MAP_FAILED) return;
    begin_ = static_cast<std::byte*>(got);
    (void)::madvise(begin_, bytes_max_, MADV_HUGEPAGE);
  }
  const std::size_t steps = (wanted_bytes + step_bytes - 1) / step_bytes;
  const std::size_t usable = std::min(steps * step_bytes, bytes_max_);
  if (usable > usable_bytes_ && ::mprotect(begin_, usable, PROT_READ | PROT_WRITE) == 0)
    usable_bytes_ = usable;
}

std::size_t GrowingMemory::add(std::span<const std::byte> more) {
  if (more.empty()) return 0;
  if (more.size() > usable_bytes_ - size_bytes_) make_usable(size_bytes_ + more.size());
  const std::size_t added = std::min(more.size(), usable_bytes_ - size_bytes_);
  if (added > 0) std::memcpy(begin_ + size_bytes_, more.data(), added);
  size_bytes_ += added;
  return added;
}

void GrowingMemory::clear() {
  if (begin_ != nullptr) (void)::munmap(begin_, bytes_max_);
  begin_ = nullptr;
  size_bytes_ = usable_bytes_ = 0;
}

}  // namespace firebreak::os
