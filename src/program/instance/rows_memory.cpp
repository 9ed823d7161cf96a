// SPDX-License-Identifier: Apache-2.0
/// Rows of the table of imports: memory and mappings.
#include <malloc.h>
#include <sys/mman.h>

#include <algorithm>
#include <atomic>
#include <cerrno>
#include <cstdlib>
#include <cstring>
#include <limits>

#include "ground/os/memory.h"
#include "program/instance/rows.h"
#include "program/instance/window.h"

namespace firebreak::instance::rows {
namespace {

std::uintptr_t number(const void* address) { return reinterpret_cast<std::uintptr_t>(address); }

/// The window's placeholder. The first copy that asks for one makes it, for all and for good.
constinit std::atomic<bool> window_is_kept{false};

/// True when somebody asks for a placeholder inside the window, whatever for.
bool is_placeholder(const void* address, int fd, int protection, int flags) {
  return fd == -1 && protection == PROT_NONE && (flags & MAP_FIXED) == 0 && is_in_window(number(address));
}

void* or_no_memory(void* memory) {
  if (memory == nullptr) errno = ENOMEM;
  return memory;
}

bool multiply(std::size_t count, std::size_t size_bytes, std::size_t& into) {
  return !__builtin_mul_overflow(count, size_bytes, &into);
}

}  // namespace

void* allocate(Taken& taken, std::size_t size_bytes) {
  return or_no_memory(taken.memory.allocate(size_bytes));
}

/// Memory that the C library itself has allocated for the driver, as a line that it read, is the process's.
void give(Taken& taken, void* memory) {
  if (memory == nullptr) return;
  taken.memory.holds(memory) ? taken.memory.give(memory) : std::free(memory);
}

void* allocate_zeroed(Taken& taken, std::size_t count, std::size_t size_bytes) {
  std::size_t all_bytes = 0;
  return or_no_memory(multiply(count, size_bytes, all_bytes) ? taken.memory.allocate_zeroed(all_bytes)
                                                             : nullptr);
}

void* resize(Taken& taken, void* memory, std::size_t size_bytes) {
  if (memory == nullptr) return allocate(taken, size_bytes);
  const bool is_ours = taken.memory.holds(memory);
  const std::size_t old_bytes = is_ours ? taken.memory.usable_bytes(memory) : ::malloc_usable_size(memory);
  if (is_ours && size_bytes <= old_bytes && size_bytes * 2 >= old_bytes) return memory;
  void* const moved = taken.memory.allocate(size_bytes);
  if (moved == nullptr) return or_no_memory(nullptr);
  std::memcpy(moved, memory, std::min(old_bytes, size_bytes));
  give(taken, memory);
  return moved;
}

void* resize_array(Taken& taken, void* memory, std::size_t count, std::size_t size_bytes) {
  std::size_t all_bytes = 0;
  return multiply(count, size_bytes, all_bytes) ? resize(taken, memory, all_bytes) : or_no_memory(nullptr);
}

void* allocate_aligned(Taken& taken, std::size_t alignment_bytes, std::size_t size_bytes) {
  return or_no_memory(taken.memory.allocate(size_bytes, alignment_bytes));
}

void* allocate_pages(Taken& taken, std::size_t size_bytes) {
  return allocate_aligned(taken, os::page_size(), size_bytes);
}

int allocate_aligned_into(Taken& taken, void** into, std::size_t alignment_bytes, std::size_t size_bytes) {
  const bool is_power = alignment_bytes != 0 && (alignment_bytes & (alignment_bytes - 1)) == 0;
  if (!is_power || alignment_bytes % sizeof(void*) != 0) return EINVAL;
  void* const memory = taken.memory.allocate(size_bytes, alignment_bytes);
  if (memory == nullptr) return ENOMEM;
  *into = memory;
  return 0;
}

std::size_t usable_bytes(Taken& taken, void* memory) {
  if (memory == nullptr) return 0;
  return taken.memory.holds(memory) ? taken.memory.usable_bytes(memory) : ::malloc_usable_size(memory);
}

char* duplicate_text_up_to(Taken& taken, const char* text, std::size_t most) {
  const std::size_t length = ::strnlen(text, most);
  auto* const made = static_cast<char*>(allocate(taken, length + 1));
  if (made == nullptr) return nullptr;
  std::memcpy(made, text, length);
  made[length] = '\0';
  return made;
}

char* duplicate_text(Taken& taken, const char* text) {
  return duplicate_text_up_to(taken, text, std::numeric_limits<std::size_t>::max());
}

void* map(Taken& taken, void* address, std::size_t size_bytes, int protection, int flags, int fd,
          off_t offset) {
  const bool is_window = is_placeholder(address, fd, protection, flags);
  if (is_window && window_is_kept.load()) return address;
  void* const got = os::raw_mmap(address, size_bytes, protection, flags, fd, offset);
  if (got == MAP_FAILED) return got;
  if (is_window && got == address) {
    window_is_kept.store(true);
  } else {
    taken.mappings.add(number(got), size_bytes);
  }
  return got;
}

/// Whoever gives up the window is one of several who have it.
int unmap(Taken& taken, void* address, std::size_t size_bytes) {
  if (window_is_kept.load(std::memory_order_relaxed) && is_in_window(number(address))) return 0;
  const int result = os::raw_munmap(address, size_bytes);
  if (result == 0) taken.mappings.remove(number(address), size_bytes);
  return result;
}

void* map_anew(Taken& taken, void* old, std::size_t old_bytes, std::size_t new_bytes, int flags,
               void* wanted) {
  void* const got = ::mremap(old, old_bytes, new_bytes, flags, wanted);
  if (got == MAP_FAILED) return got;
  taken.mappings.remove(number(old), old_bytes);
  taken.mappings.add(number(got), new_bytes);
  return got;
}

}  // namespace firebreak::instance::rows
