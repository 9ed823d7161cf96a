// SPDX-License-Identifier: Apache-2.0
#include "program/instance/arena.h"

#include <sys/mman.h>

#include <algorithm>
#include <bit>
#include <cstring>

#include "ground/os/memory.h"

namespace firebreak::instance {
namespace {

/// From there on the pages of a free piece are given back. A driver that writes a core dump takes and gives
/// pieces of some hundred KiB all the time.
constexpr std::size_t large_bytes = std::size_t{4} << 20;
constexpr std::size_t largest_bytes = std::size_t{1} << 33;

}  // namespace

/// Four classes between two powers of two.
std::size_t Arena::class_of(std::size_t size_bytes, std::size_t& rounded_bytes) {
  const std::size_t wanted = std::max(size_bytes, least_alignment_bytes);
  const auto power = static_cast<std::size_t>(std::bit_width(wanted) - 1);
  const std::size_t step = std::max(std::size_t{1} << (power - 2), least_alignment_bytes);
  rounded_bytes = (wanted + step - 1) / step * step;
  const auto rounded_power = static_cast<std::size_t>(std::bit_width(rounded_bytes) - 1);
  return rounded_power * 4 + ((rounded_bytes - (std::size_t{1} << rounded_power)) >> (rounded_power - 2));
}

/// Of a piece that was aligned, the header in front of all of it.
Arena::Header* Arena::header_of(const void* memory) {
  auto* header = static_cast<Header*>(const_cast<void*>(memory)) - 1;
  if (header->mark == aligned_mark) {
    auto* const bytes = reinterpret_cast<std::byte*>(header);
    header = reinterpret_cast<Header*>(bytes - header->size_bytes);
  }
  return header;
}

/// In large pages, where Linux has them: a Transformers model's dump began after 0.9 s by pages of 4 KiB, and
/// after 0.4 s by these (H200).
bool Arena::make_usable(std::size_t up_to) {
  if (begin_ == 0) {
    void* const got =
        os::raw_mmap(nullptr, reserved_bytes, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    if (got == MAP_FAILED) return false;
    begin_ = reinterpret_cast<std::uintptr_t>(got);
    (void)::madvise(got, reserved_bytes, MADV_HUGEPAGE);
  }
  if (up_to <= usable_bytes_) return true;
  const std::size_t wanted = (up_to + step_bytes - 1) / step_bytes * step_bytes;
  if (wanted > reserved_bytes) return false;
  auto* const from = reinterpret_cast<void*>(begin_ + usable_bytes_);
  if (::mprotect(from, wanted - usable_bytes_, PROT_READ | PROT_WRITE) != 0) return false;
  usable_bytes_ = wanted;
  return true;
}

void* Arena::take(std::size_t size_bytes, bool& is_fresh) {
  std::size_t rounded = 0;
  const std::size_t its_class = class_of(size_bytes, rounded);
  const std::lock_guard lock(mutex_);
  void* const free = free_[its_class];
  is_fresh = free == nullptr;
  if (free != nullptr) {
    std::memcpy(&free_[its_class], free, sizeof(void*));
    return free;
  }
  if (!make_usable(used_bytes_ + sizeof(Header) + rounded)) return nullptr;
  auto* const header = reinterpret_cast<Header*>(begin_ + used_bytes_);
  used_bytes_ += sizeof(Header) + rounded;
  *header = {rounded, plain_mark};
  return header + 1;
}

void* Arena::allocate(std::size_t size_bytes, std::size_t alignment_bytes) {
  bool is_fresh = false;
  if (size_bytes > largest_bytes || alignment_bytes > largest_bytes) return nullptr;
  if (alignment_bytes <= least_alignment_bytes) return take(size_bytes, is_fresh);
  void* const piece = take(size_bytes + alignment_bytes, is_fresh);
  if (piece == nullptr) return nullptr;
  const auto begin = reinterpret_cast<std::uintptr_t>(piece);
  const std::uintptr_t aligned = (begin + alignment_bytes - 1) & ~(alignment_bytes - 1);
  if (aligned != begin) reinterpret_cast<Header*>(aligned)[-1] = {aligned - begin, aligned_mark};
  return reinterpret_cast<void*>(aligned);
}

void* Arena::allocate_zeroed(std::size_t size_bytes) {
  bool is_fresh = false;
  if (size_bytes > largest_bytes) return nullptr;
  void* const piece = take(size_bytes, is_fresh);
  if (piece != nullptr && !is_fresh) std::memset(piece, 0, size_bytes);
  return piece;
}

std::size_t Arena::usable_bytes(const void* memory) const {
  const Header* const header = header_of(memory);
  const auto end = reinterpret_cast<std::uintptr_t>(header + 1) + header->size_bytes;
  return end - reinterpret_cast<std::uintptr_t>(memory);
}

void Arena::give(void* memory) {
  if (!holds(memory)) return;
  Header* const header = header_of(memory);
  std::size_t rounded = 0;
  const std::size_t its_class = class_of(header->size_bytes, rounded);
  void* const piece = header + 1;
  if (header->size_bytes >= large_bytes) {
    const auto page = static_cast<std::uintptr_t>(os::page_size());
    const std::uintptr_t begin =
        (reinterpret_cast<std::uintptr_t>(piece) + sizeof(void*) + page - 1) & ~(page - 1);
    const std::uintptr_t end = (reinterpret_cast<std::uintptr_t>(piece) + header->size_bytes) & ~(page - 1);
    if (begin < end) ::madvise(reinterpret_cast<void*>(begin), end - begin, MADV_DONTNEED);
  }
  const std::lock_guard lock(mutex_);
  std::memcpy(piece, &free_[its_class], sizeof(void*));
  free_[its_class] = piece;
}

void Arena::end() {
  const std::lock_guard lock(mutex_);
  if (begin_ != 0) os::raw_munmap(reinterpret_cast<void*>(begin_), reserved_bytes);
  begin_ = used_bytes_ = usable_bytes_ = 0;
  free_ = {};
}

}  // namespace firebreak::instance
