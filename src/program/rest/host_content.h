// SPDX-License-Identifier: Apache-2.0
/// The content of the GPU's memory while a program rests without it: in memory of the host's, which is the
/// program's own and which its children do not get.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <vector>

#include "ground/base/result.h"
#include "ground/os/memory_left.h"

namespace firebreak::rest {

/// A part of the GPU's addresses.
struct GpuRange {
  std::uint64_t begin = 0;
  std::uint64_t size_bytes = 0;
};

/// A part of a range, with its place in the host's memory.
struct Chunk {
  std::uint64_t on_gpu = 0;
  std::byte* on_host = nullptr;
  std::size_t size_bytes = 0;
};

/// The host's memory that others are left with at least: a sixteenth of what there is, and no less than 256
/// MiB.
std::uint64_t left_for_others_bytes(std::uint64_t left_bytes);
/// ResourceExhausted, with both figures, where the host does not have so much. `left_bytes` empty: nobody
/// knows.
Status check_room(std::uint64_t wanted_bytes, std::optional<std::uint64_t> left_bytes);

/// Its place is there from the start; who fills it takes the memory. Belongs to one thread.
class HostContent {
 public:
  /// ResourceExhausted: the host has not enough memory for all of that.
  static Result<HostContent> of(const std::vector<GpuRange>& ranges);

  std::uint64_t size_bytes() const { return size_bytes_; }
  /// All of it, in the order of the ranges, in parts of at most so many bytes.
  std::vector<Chunk> chunks(std::size_t size_bytes_max) const;

 private:
  struct Kept {
    GpuRange range;
    os::OwnMemory memory;
  };
  std::vector<Kept> all_;
  std::uint64_t size_bytes_ = 0;
};

}  // namespace firebreak::rest
