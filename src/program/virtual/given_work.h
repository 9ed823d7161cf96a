// SPDX-License-Identifier: Apache-2.0
/// What the program has given its GPU, operation by operation, so that what was under way when its domain
/// died can be done again in the next instance (program/virtual/redo.h decides whether).
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "ground/base/result.h"
#include "program/cuda/backend.h"
#include "program/redo/ring_reader.h"
#include "program/redo/ring_writer.h"
#include "program/virtual/objects.h"
#include "shared/abi/redo_ring.h"

namespace firebreak::virtual_driver {

/// Of a launch, as the program gave it.
struct GivenLaunch {
  CUfunction function = nullptr;  ///< or a CUkernel
  std::array<unsigned int, 3> grid{};
  std::array<unsigned int, 3> block{};
  unsigned int shared_bytes = 0;
};

/// Rows of memory at the program's addresses, which may be the host's.
using GivenArea = abi::RedoArea;
constexpr GivenArea one_row(std::uint64_t address, std::uint64_t size_bytes) {
  return {address, size_bytes, size_bytes, 1};
}

/// Thread safe; takes no lock. Each operation that Work::queued counts is noted here once, in the order in
/// which the driver got those of one stream. What is old is overwritten.
class GivenWork {
 public:
  GivenWork();

  void launch(const Work& work, const GivenLaunch& launch, std::span<const std::byte> parameters);
  void copy(const Work& work, const GivenArea& to, const GivenArea& from);
  void fill(const Work& work, const GivenArea& to, std::uint32_t value, std::uint32_t value_bytes);
  /// A copy from the host, whose bytes are kept. More than abi::redo_payload_max: unknown().
  void upload(const Work& work, std::uint64_t to, std::span<const std::byte> bytes);
  /// What a graph does, by its number (Graphs::note_launch).
  void graph(const Work& work, std::uint64_t content);
  /// It writes no memory that anybody reads: an event.
  void nothing(const Work& work);
  void unknown(const Work& work, abi::RedoCause cause = abi::RedoCause::Unknown);

  /// A mark lies behind all that was noted of that work: what comes next there has not begun before it.
  void mark(const Work& work);
  /// The program has seen the end of something that it had given.
  void seen();
  /// Of code, or of memory at its address, that what was given before may have used: something else may take
  /// its place.
  void given_back();

  /// The first thing that has not ended, and all that was given after it, to whatever stream: what follows
  /// from it may be known to have ended without it.
  struct UnderWay {
    redo::RedoLog log;
    struct Entry {
      std::size_t index = 0;  ///< into the log's
      bool has_ended = false;
      bool may_have_begun = true;  ///< false: a mark before it is not there yet
      bool may_be_seen = false;    ///< the program may know that it has ended
    };
    std::vector<Entry> entries;
  };
  /// Nobody gives work meanwhile. ResourceExhausted: it does not reach back so far.
  Result<UnderWay> under_way(std::span<Work* const> works);

 private:
  static constexpr std::size_t ring_bytes = std::size_t{1} << 20;  ///< some thousands of launches

  static std::uint64_t number_of(const Work& work) { return reinterpret_cast<std::uintptr_t>(&work); }

  redo::RingMemory memory_;
  redo::RingWriter writer_;
};

}  // namespace firebreak::virtual_driver
