// SPDX-License-Identifier: Apache-2.0
/// Notes what is given to the GPU, before it is.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <vector>

#include "shared/abi/redo_ring.h"

namespace firebreak::redo {

/// Memory for a ring in this process alone, zeroed, as a ring has to lie. A whole number of pages.
class RingMemory {
 public:
  explicit RingMemory(std::size_t size_bytes) : pages_(size_bytes / sizeof(Page)) {}
  std::span<std::byte> bytes() { return std::as_writable_bytes(std::span(pages_)); }

 private:
  struct alignas(alignof(abi::RedoRing)) Page {
    std::array<std::byte, alignof(abi::RedoRing)> bytes{};
  };
  std::vector<Page> pages_;
};

/// Writes into a ring that somebody else maps and keeps. No locks, no allocation, no system call; any threads
/// at once. Who uses one stream in several threads at once has to order what they note as the driver gets it.
/// A thread that stands still in the middle of a note while others go once around damages the ring: readers
/// see it.
class RingWriter {
 public:
  /// Makes a ring of zeroed memory. Nothing: it is too small, its size is not a header and a power of two, or
  /// it does not begin at a page.
  static std::optional<RingWriter> make(std::span<std::byte> memory);

  void launch(std::uint64_t stream, const abi::RedoLaunch& launch, std::span<const std::byte> parameters);
  void copy(std::uint64_t stream, const abi::RedoCopy& copy);
  void fill(std::uint64_t stream, const abi::RedoFill& fill);
  void upload(std::uint64_t stream, const abi::RedoUpload& upload, std::span<const std::byte> bytes);
  void graph(std::uint64_t stream, const abi::RedoGraph& graph);
  void record_event(std::uint64_t stream, std::uint64_t event);
  void wait_for_event(std::uint64_t stream, std::uint64_t event);
  void save(std::uint64_t stream, const abi::RedoSave& save);
  void start_region(std::uint64_t stream, const abi::RedoMark& before);
  void cannot_redo(std::uint64_t stream, abi::RedoCause cause);

  /// Returns the counter that the GPU writes to.
  std::atomic<std::uint64_t>& completed(std::size_t count) { return ring_->completed[count]; }

 private:
  RingWriter(abi::RedoRing& ring, std::byte* data) : ring_(&ring), data_(data) {}

  void write(abi::RedoKind kind, abi::RedoCause cause, std::uint64_t stream, std::span<const std::byte> body,
             std::span<const std::byte> payload);

  abi::RedoRing* ring_;
  std::byte* data_;
};

}  // namespace firebreak::redo
