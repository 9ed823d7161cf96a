// SPDX-License-Identifier: Apache-2.0
/// Memory files, mappings, and waiting on a word of them.
#pragma once

#include <atomic>
#include <climits>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>

#include "ground/base/clock.h"
#include "ground/base/result.h"
#include "ground/os/fd.h"

namespace firebreak::os {

// --- memory
// Shared memory: memory files (memfd) and the mappings of them.

/// Bytes in a page of this machine.
std::size_t page_size();

enum class MemorySeal {
  None,  ///< whoever has the descriptor may resize it
  Size,  ///< the size is fixed for good: no peer can shrink it under our mapping (that would be a SIGBUS for
         ///< us)
};

/// An anonymous memory file, close-on-exec. `name` shows in /proc/PID/fd only.
Result<Fd> create_memory_file(const std::string& name, std::size_t size_bytes,
                              MemorySeal seal = MemorySeal::Size);

/// Returns what /proc/PID/fd shows of a descriptor of such a file.
std::string memory_file_link(const std::string& name);

/// A memory file that holds `content`, to be read from its beginning: standard input for a program.
Result<Fd> memory_file_with(std::string_view content);

/// The same memory file again, with a descriptor that can only write: nobody can map it.
Result<Fd> reopen_for_writing_only(int fd);

/// The same memory file again, opened anew with the same rights: a lock of the other descriptor is not this
/// one's.
Result<Fd> reopen(int fd);

/// Locks the file for as long as this opening of it lives: until all duplicates of the descriptor, wherever
/// they are, and all mappings made of them are gone.
Status lock_while_open(int fd);
/// True when somebody's opening of the same file, another one than this, holds that lock.
Result<bool> is_locked_elsewhere(int fd);

/// The whole of a file that can be read at any place, wherever its descriptor stands.
Result<std::string> content_of(int fd);
/// Returns the content of the file at that path.
Result<std::string> content_at(const std::string& path);
/// The same of a file of /proc or /sys, which says no size: it is read to its end.
Result<std::string> content_of_proc(const std::string& path);

/// The size of the file behind a descriptor.
Result<std::size_t> file_size(int fd);

/// True when a peer can no longer shrink the memory file; ask before mapping a descriptor that somebody sent.
bool has_fixed_size(int fd);
/// The same, and that it has exactly so many bytes: it can be mapped as what it is said to be.
bool has_fixed_size(int fd, std::size_t size_bytes);

enum class Protection { Read, ReadWrite };

/// Owns one mapping; unmaps it at the end. Movable, not copyable.
class Mapping {
 public:
  /// Shared mapping of `size_bytes` of a file; the descriptor may be closed afterwards.
  static Result<Mapping> of_file(int fd, std::size_t size_bytes, Protection protection,
                                 std::size_t offset = 0);
  /// Zeroed memory of our own that children of fork and the kernel see as well; page aligned.
  static Result<Mapping> anonymous(std::size_t size_bytes);
  /// Exactly those addresses, whole pages, kept from everybody: nobody can read or write them. Unavailable:
  /// Linux gives other addresses instead.
  static Result<Mapping> placeholder(std::uint64_t address, std::size_t size_bytes);
  /// Keeps everybody from reading or writing the last `size_bytes`, whole pages: code that runs past the end
  /// fails.
  Status forbid_tail(std::size_t size_bytes);

  Mapping() = default;
  Mapping(Mapping&& other) noexcept;
  Mapping& operator=(Mapping&& other) noexcept;
  Mapping(const Mapping&) = delete;
  Mapping& operator=(const Mapping&) = delete;
  ~Mapping() { reset(); }

  void reset();
  explicit operator bool() const { return address_ != nullptr; }
  void* data() const { return address_; }
  std::size_t size_bytes() const { return size_bytes_; }
  std::span<std::byte> bytes() const { return {static_cast<std::byte*>(address_), size_bytes_}; }
  /// The mapping seen as a T, which must fit and must be made of plain memory or lock-free atomics.
  template <class T>
  T* as() const {
    return sizeof(T) <= size_bytes_ ? static_cast<T*>(address_) : nullptr;
  }

 private:
  Mapping(void* address, std::size_t size_bytes) : address_(address), size_bytes_(size_bytes) {}

  void* address_ = nullptr;
  std::size_t size_bytes_ = 0;
};

// --- below the C library
// What the C library's functions of these names ask of Linux, for who stands in front of them. They answer
// and set errno as those do.

void* raw_mmap(void* address, std::size_t size_bytes, int protection, int flags, int fd, std::int64_t offset);
int raw_munmap(void* address, std::size_t size_bytes);
int raw_bind(int fd, const void* name, std::uint32_t size_bytes);

/// Copies from this process's own memory what may not be there. False: some of it is not to be read, or that
/// is not to be known here.
bool copy_if_readable(void* to, const void* from, std::size_t size_bytes);

// --- barrier
// A fence that one thread pays for on behalf of all others (membarrier(2), private expedited).

/// Prepares the barrier; called once a process, before the first one. False: this kernel has none.
bool prepare_process_barrier();
/// Returns when every thread of this process has passed a full memory barrier.
void pass_process_barrier();

// --- futex
// Sleeping on a 32-bit word that processes share.

static_assert(std::atomic<std::uint32_t>::is_always_lock_free && sizeof(std::atomic<std::uint32_t>) == 4);

/// Sleeps while `word` holds `expected`, at most `timeout` (empty: for ever). False only when the time is up;
/// true may be spurious, so the caller looks at the word again. Works between processes.
bool futex_wait(const std::atomic<std::uint32_t>& word, std::uint32_t expected,
                std::optional<Nanoseconds> timeout);

/// Wakes at most `count` sleepers of any process; returns how many were woken.
int futex_wake(std::atomic<std::uint32_t>& word, int count = INT_MAX);

}  // namespace firebreak::os
