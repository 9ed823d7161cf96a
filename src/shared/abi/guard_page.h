// SPDX-License-Identifier: Apache-2.0
/// The page in which a guarded tenant says what its guard ranges cover and what it has allocated, so that
/// somebody outside can tell what a stray access came from. A memory file of the tenant's own; whoever may
/// duplicate the tenant's descriptors (pidfd_getfd) finds it by its name and maps it. Written by the tenant,
/// but for `heard`, and unproven to everybody else: nothing in it is trusted beyond the tenant itself.
#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>

namespace firebreak::abi {

inline constexpr const char* guard_page_name = "firebreak-guard";
inline constexpr std::uint32_t guard_page_magic = 0x46424744;  // "FBGD"
inline constexpr std::uint32_t guard_page_version = 5;
inline constexpr std::size_t guard_ranges_max = 512;
inline constexpr std::size_t guard_allocations_max = 32768;
inline constexpr std::size_t guard_note_bytes = 192;
inline constexpr std::size_t guard_launch_slots_max = 128;
inline constexpr std::size_t guard_launches_kept = 128;
inline constexpr std::size_t guard_kernels_max = 512;
inline constexpr std::size_t guard_kernel_name_bytes = 128;

enum class GuardState : std::uint32_t { Starting = 0, On = 1, Off = 2 };

/// Addresses [begin, end) where a stray access is serviced; end 0: none. What is allocated inside is not cut
/// out. Who hears of a stray looks here a little later: what was covered until then stays as long as there is
/// room.
struct GuardRange {
  std::atomic<std::uint64_t> begin;
  std::atomic<std::uint64_t> end;
  std::atomic<std::int64_t>
      until_ns;  ///< time at which the driver got the addresses back, CLOCK_MONOTONIC; 0: it has not
};

/// The call that made an allocation. Numbers are part of the layout.
enum class GuardFunction : std::uint32_t {
  MemAlloc = 1,
  MemAllocPitch = 2,
  MemMap = 3,
  MemAllocAsync = 4,
  MemAllocManaged = 5,
  MemHostAlloc = 6,
  // Arrays: in place of an address, which nobody knows, stands the handle.
  ArrayCreate = 7,
  Array3DCreate = 8,
  MipmappedArrayCreate = 9,
};

/// One allocation, alive or freed. `version` is odd while it is being written.
struct GuardAllocation {
  std::atomic<std::uint32_t> version;
  std::atomic<std::uint32_t> function;  ///< a GuardFunction; 0: this slot was never used
  std::atomic<std::uint64_t> address;
  std::atomic<std::uint64_t> size_bytes;  ///< size as the caller asked for it
  std::atomic<std::uint64_t> call;        ///< number of the allocating call in the process, from 1
  std::atomic<std::uint64_t> freed_call;  ///< number of the freeing call, from 1; 0: alive
};
static_assert(sizeof(GuardAllocation) == 40);

/// Why the numbers of GuardWork do not tell everything about the process's work; bits.
enum GuardWorkGap : std::uint32_t {
  GuardWorkOtherContext = 1,  ///< the process had more than one context
  GuardWorkSlotsFull = 2,     ///< a launch found no slot
  GuardWorkUncounted = 4,     ///< a launching function was called that is not counted
  GuardWorkNoMarkers = 8,     ///< the driver does not put completion markers
};

/// The launches of one thread into one stream, numbered from 1; numbers wrap. A graph counts as one.
struct alignas(64) GuardLaunches {
  std::atomic<std::uint32_t> begun;     ///< counted before the driver was called
  std::atomic<std::uint32_t> launched;  ///< counted after the driver returned
  std::atomic<std::uint32_t> marked;    ///< launch behind which the last marker was queued
  std::atomic<std::uint32_t> settled;   ///< ended some milliseconds ago at the latest
  std::uint32_t padding[12];
  /// Kernel of launch n at (n - 1) % guard_launches_kept: an index into GuardWork::kernel, 0: not known.
  std::atomic<std::uint16_t> kernel[guard_launches_kept];
};
static_assert(sizeof(GuardLaunches) == 64 + 2 * guard_launches_kept);

/// Tells what the process has launched, and how far its GPU has come. `done` is written by the GPU, by stream
/// writes behind launches, also after the process's death: launches up to that number have ended.
struct alignas(4096) GuardWork {
  alignas(4096) std::atomic<std::uint32_t> done[guard_launch_slots_max];  ///< a page of its own, registered
  alignas(4096) std::atomic<std::uint32_t> gaps;                          ///< GuardWorkGap
  std::atomic<std::uint32_t> captures;  ///< captures under way: launches may be recorded and not done
  std::atomic<std::uint32_t> slots;     ///< how many of `launches` were ever used
  std::atomic<std::uint32_t> kernels;   ///< how many of `kernel` are set, with the first, which is none
  GuardLaunches launches[guard_launch_slots_max];
  char kernel[guard_kernels_max][guard_kernel_name_bytes];  ///< names as the driver has them, perhaps cut
};

struct alignas(4096) GuardPage {
  std::uint32_t magic;
  std::uint32_t version;
  std::atomic<std::uint32_t> state;   ///< a GuardState
  std::atomic<std::uint32_t> ranges;  ///< how many of `range` were ever used
  std::atomic<std::uint64_t> guard_range_bytes;
  std::atomic<std::uint64_t> allocating_calls;
  std::atomic<std::uint64_t> freeing_calls;
  std::atomic<std::uint64_t> forgotten;   ///< allocations for which there was no slot
  std::atomic<std::uint64_t> slots_used;  ///< slots of `allocation` in use, from its beginning
  std::atomic<std::uint32_t> heard;       ///< 1: somebody outside hears strays from now on, and wrote this
  std::uint32_t padding;
  char note[guard_note_bytes];  ///< why the guard is off, or what it could not cover; set before `state`
  GuardRange range[guard_ranges_max];
  GuardAllocation allocation[guard_allocations_max];
  GuardWork work;
};
static_assert(offsetof(GuardPage, note) == 64);
static_assert(offsetof(GuardPage, range) == 64 + guard_note_bytes);
static_assert(sizeof(GuardPage) % 4096 == 0);
static_assert(std::atomic<std::uint64_t>::is_always_lock_free);

}  // namespace firebreak::abi
