// SPDX-License-Identifier: Apache-2.0
/// Reads a ring that its process left behind, whatever is in it.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include "ground/base/result.h"
#include "shared/abi/redo_ring.h"

namespace firebreak::redo {

/// One record; what the body needs is there, and all sizes in it agree.
struct RedoEntry {
  std::uint64_t sequence = 0;
  abi::RedoKind kind{};
  abi::RedoCause cause{};
  std::uint64_t stream = 0;
  abi::RedoBody body{};
  std::size_t payload_at = 0;  ///< place in RedoLog::payloads
  std::size_t payload_bytes = 0;
};

struct RedoLog {
  bool is_cut = false;  ///< the ring had more before, which is overwritten
  /// True when between two records there is something else: a writer that went on after damage, or was
  /// overtaken. A record that is cut off at the ring's end is no gap: its operation was not given to the GPU.
  bool has_gap = false;
  std::vector<RedoEntry> entries;  ///< entries in the order in which they were noted
  std::vector<std::byte> payloads;
  std::array<std::uint64_t, abi::redo_counts_max> completed{};

  std::span<const std::byte> payload(const RedoEntry& entry) const {
    return std::span(payloads).subspan(entry.payload_at, entry.payload_bytes);
  }
};

/// `file` is all of the memory file. Memory and time grow with the ring's size alone. Protocol: it is no ring
/// of this version.
Result<RedoLog> read_ring(std::span<const std::byte> file);

}  // namespace firebreak::redo
