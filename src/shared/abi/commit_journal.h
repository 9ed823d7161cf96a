// SPDX-License-Identifier: Apache-2.0
/// A tenant's forward state in shared memory: an image of it as of some step, and a journal of what later
/// steps changed. One process writes, and never reads what it wrote; its successor reads, once, and believes
/// nothing that does not verify. The file is sparse: only what was used takes memory.
///
/// A commit appends an entry, and the GPU moves CommitArea::next_step past it in stream order. Entries that
/// the GPU has passed are folded into the image by later commits, and then the mark moves. Folding writes
/// absolute bytes, so it can be done again over whatever a dead process left half done:
///
///   forward state = image, then the entries from the mark's next_step to the GPU's
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>

#include "shared/abi/shared_page.h"

namespace firebreak::abi {

inline constexpr std::size_t state_bytes_max = std::size_t{16} << 20;
/// Commits that may be queued on the GPU before the host has to wait for the oldest.
inline constexpr std::size_t journal_entries = 256;
/// Room for any whole state, and for as much again that still waits for the GPU.
inline constexpr std::size_t payload_bytes_max = std::size_t{32} << 20;
/// The image is verified in blocks of this size; what a commit costs grows with the blocks that it touches.
inline constexpr std::size_t image_block_bytes = 512;
inline constexpr std::size_t image_blocks = state_bytes_max / image_block_bytes;

enum class EntryKind : std::uint64_t {
  Changes = 1,  ///< the payload is a sequence of ChangeHeader and bytes, each padded to 8 bytes
  Whole = 2,    ///< the payload is the state; what was before does not matter
};

struct ChangeHeader {
  std::uint64_t offset;
  std::uint64_t size_bytes;
};

/// One step. `checksum` covers all of it, and the payload.
struct alignas(64) JournalEntry {
  std::uint64_t epoch;
  std::uint64_t step;
  std::uint64_t payload_offset;
  std::uint64_t payload_bytes;
  std::uint64_t state_bytes;  ///< size of the state after this step; new bytes that nobody wrote are zero
  EntryKind kind;
  std::uint64_t passed;  ///< the GPU's next_step when this was written: whoever finds less there finds damage
  std::uint64_t checksum;
};

/// Says which steps are in the image. Two marks are written in turn; the newer one that verifies counts.
struct alignas(64) ImageMark {
  std::uint64_t epoch;
  std::uint64_t next_step;        ///< the first entry that is still needed
  std::uint64_t image_next_step;  ///< the state before this step is in the image; when it is less than
                                  ///< next_step, that entry is a whole state
  std::uint64_t state_bytes;      ///< size of the image's state
  std::uint64_t reserved[3];
  std::uint64_t checksum;
};

/// The checksum of one block of the image as it was after step next_step - 1. A block has two: the one that
/// holds, and the one that will hold once the entry that is being folded is in.
struct BlockSum {
  std::uint64_t hash;
  std::uint64_t next_step;
};

struct alignas(4096) CommitJournal {
  ImageMark marks[2];
  alignas(4096) JournalEntry entries[journal_entries];  ///< indexed by step, modulo journal_entries
  alignas(4096) BlockSum sums[image_blocks][2];
  alignas(4096) std::byte payloads[payload_bytes_max];
  alignas(4096) std::byte image[state_bytes_max];
};

/// The whole memory file.
struct SharedMemory {
  SharedPage page;
  CommitJournal journals[commit_areas];  ///< one a term of office
};

static_assert(sizeof(JournalEntry) == 64 && sizeof(ImageMark) == 64 && sizeof(BlockSum) == 16);
static_assert(offsetof(CommitJournal, entries) == 4096);
static_assert(offsetof(CommitJournal, sums) == 5 * 4096);
static_assert(offsetof(SharedMemory, journals) == sizeof(SharedPage));

/// Picks the journal that the process of `epoch` writes, which goes on from what journal `source` holds
/// (none: nobody was in office). It is never the source, so however many processes die on the way into
/// office, the source is whole. It is not the journal of the process of the epoch before either, which is
/// fenced and may still run: from the same source that one takes the other journal, and where it came into
/// office it is the source. Processes of earlier epochs have ended.
inline std::size_t journal_for(std::uint64_t epoch, std::optional<std::size_t> source) {
  const std::size_t after = source ? *source + 1 : 0;
  return (after + epoch % 2) % commit_areas;
}

}  // namespace firebreak::abi
