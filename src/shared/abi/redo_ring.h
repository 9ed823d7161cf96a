// SPDX-License-Identifier: Apache-2.0
/// The operations that a process has lately given the GPU, in a memory file that outlives it: enough to do
/// them again. It is a ring: what is old is overwritten. The process writes, and its GPU the counts of what
/// has completed; whoever reads treats all of it as unproven. An operation is noted before the driver is
/// asked, so what was not noted to its end was not given to the GPU.
#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>

namespace firebreak::abi {

inline constexpr const char* redo_ring_name = "firebreak-redo";
inline constexpr std::uint32_t redo_ring_magic = 0x46425252;  // "FBRR"
inline constexpr std::uint32_t redo_ring_version = 1;
/// Records begin at multiples of this.
inline constexpr std::size_t redo_unit_bytes = 64;
inline constexpr std::size_t redo_counts_max = 256;
/// Largest payload behind a record's body: parameters, or bytes from the host. A launch of CUDA 13 has at
/// most 32,764.
inline constexpr std::size_t redo_payload_max = std::size_t{32} << 10;
/// Smallest ring behind the header: the largest record fits several times.
inline constexpr std::size_t redo_capacity_min = std::size_t{256} << 10;

/// Numbers are part of the layout.
enum class RedoKind : std::uint16_t {
  Launch = 1,
  Copy = 2,  ///< a copy from GPU memory to GPU memory
  Fill = 3,
  Upload = 4,  ///< a copy of the bytes in the payload
  EventRecord = 5,
  EventWait = 6,
  Save = 7,         ///< a copy of what the next operation may overwrite, to where it is kept
  RegionStart = 8,  ///< a start, with the marker that says that all before it has completed
  CannotRedo = 9,   ///< operations from here until a RegionStart cannot be done again; RedoRecord::cause says
                    ///< why
  Graph = 10,       ///< several operations at once, which the process alone knows
};

enum class RedoCause : std::uint16_t {
  None = 0,
  Unknown = 1,       ///< nothing is known of what it reads and writes, or it reads what it writes
  HostCallback = 2,  ///< the host acts in the middle of a stream
  HostMemory = 3,    ///< the operation reads or writes memory of the host, which is not kept
  InterProcess = 4,  ///< the operation's memory or events are seen by other processes
  Collective = 5,    ///< the operation waits for other GPUs
  RandomState = 6,   ///< the operation draws random numbers from a state that it moves on
  ManyStreams = 7,   ///< streams whose order is not noted
  GivenBack = 8,     ///< code or memory that operations before it may use is there no more
};

/// Rows of GPU memory. One row: the pitch does not matter.
struct RedoArea {
  std::uint64_t address;
  std::uint64_t width_bytes;
  std::uint64_t pitch_bytes;
  std::uint64_t rows;
};

/// The payload are the packed parameters.
struct RedoLaunch {
  std::uint64_t kernel;  ///< the process's own number of the kernel
  std::uint32_t grid[3];
  std::uint32_t block[3];
  std::uint32_t shared_bytes;
  std::uint32_t attributes;  ///< the process's own number of the set of launch attributes; 0: none
};
struct RedoCopy {
  RedoArea to;
  RedoArea from;
};
struct RedoFill {
  RedoArea to;
  std::uint32_t value;
  std::uint32_t value_bytes;  ///< 1, 2 or 4
};
/// The payload are the rows, one behind the other.
struct RedoUpload {
  RedoArea to;
};
struct RedoGraph {
  std::uint64_t content;  ///< the process's own number of what its graph does
};
struct RedoEvent {
  std::uint64_t event;
};
/// Complete once RedoRing::completed[count] is `value` or more.
struct RedoMark {
  std::uint32_t count;
  std::uint32_t padding;
  std::uint64_t value;
};
struct RedoSave {
  std::uint64_t from;
  std::uint64_t size_bytes;
  std::uint64_t kept_at;  ///< place in the memory where copies are kept
  RedoMark done;
};
struct RedoRegionStart {
  RedoMark before;  ///< mark in the record's stream, behind all that was given to any stream before
};

union RedoBody {
  RedoLaunch launch;
  RedoCopy copy;
  RedoFill fill;
  RedoUpload upload;
  RedoGraph graph;
  RedoEvent event;
  RedoSave save;
  RedoRegionStart region;
};

/// A record begins at a multiple of redo_unit_bytes; its body comes next, and its payload. At the end of the
/// ring it goes on at the beginning.
struct RedoRecord {
  std::uint64_t sequence;  ///< place where the record begins, in units since the ring was made, plus one.
                           ///< Written last
  std::uint64_t checksum;  ///< XXH3, of all from `size_bytes` to the payload's end; its seed is `sequence`
  std::uint32_t size_bytes;
  RedoKind kind;
  RedoCause cause;
  std::uint64_t stream;
};

struct alignas(4096) RedoRing {
  std::uint32_t magic;
  std::uint32_t version;
  std::uint64_t capacity_bytes;                       ///< size of what follows this header: a power of two
  alignas(64) std::atomic<std::uint64_t> next_bytes;  ///< place where the next record begins, since the ring
                                                      ///< was made
  /// Counts that only grow, written by the GPU in stream order.
  alignas(64) std::atomic<std::uint64_t> completed[redo_counts_max];
};

static_assert(sizeof(RedoLaunch) == 40 && sizeof(RedoCopy) == 64 && sizeof(RedoFill) == 40);
static_assert(sizeof(RedoSave) == 40 && sizeof(RedoRegionStart) == 16);
static_assert(sizeof(RedoRecord) == 32 && offsetof(RedoRecord, size_bytes) == 16);
static_assert(sizeof(RedoRing) == 4096 && offsetof(RedoRing, completed) == 128);

}  // namespace firebreak::abi
