// SPDX-License-Identifier: Apache-2.0
/// Checksums of what lies in a commit journal (XXH3, 64 bits). Each covers where it belongs as well, so that
/// what is whole but of another epoch, step or place does not pass. Never 0: unwritten memory does not pass.
#pragma once

#include <span>

#include "shared/abi/commit_journal.h"

namespace firebreak::journal {

/// Returns the checksum of the entry but its checksum, and of its payload.
std::uint64_t checksum_of(const abi::JournalEntry& entry, std::span<const std::byte> payload);

/// Returns the checksum of the mark but its checksum.
std::uint64_t checksum_of(const abi::ImageMark& mark);

/// The place of a block: which one, of which epoch, and as of which step.
struct BlockPlace {
  std::uint64_t epoch;
  std::uint64_t next_step;
  std::uint64_t block;
};
std::uint64_t checksum_of(const BlockPlace& place, std::span<const std::byte> content);

}  // namespace firebreak::journal
