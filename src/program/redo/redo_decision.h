// SPDX-License-Identifier: Apache-2.0
/// Decides what has to be done again after a fault, and what to put back before. Pure.
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

#include "program/redo/ring_reader.h"

namespace firebreak::redo {

enum class RedoAnswer : std::uint8_t {
  Nothing,  ///< everything has completed
  Redo,
  Refuse,
};

enum class RedoRefusal : std::uint8_t {
  None,
  Damaged,     ///< the ring has a gap
  Overrun,     ///< the ring does not reach back to where all is known to have completed
  CannotRedo,  ///< RedoDecision::cause says why
  Unordered,   ///< a region begins before all streams have come there, or goes on without its start
  ManyStreams,
};

/// A decision about RedoLog::entries.
struct RedoDecision {
  RedoAnswer answer = RedoAnswer::Refuse;
  RedoRefusal refusal = RedoRefusal::None;
  abi::RedoCause cause = abi::RedoCause::None;
  std::size_t refused_at = 0;  ///< the entry that is the reason
  /// First: Save entries whose bytes are put back.
  std::vector<std::size_t> restore;
  /// Operations to do again: [first, last), in their order, by one stream. Saves among them save again.
  std::size_t first = 0;
  std::size_t last =
      0;  ///< operations from here on the GPU has not begun: they are given to it for the first time
};

/// Decides. A graph's work its process alone knows: here it cannot be done again. The GPU does nothing of the
/// process any more, and its memory is as the fault left it.
RedoDecision decide(const RedoLog& log);

/// A line for a person.
const char* to_string(RedoRefusal refusal);
const char* to_string(abi::RedoCause cause);

}  // namespace firebreak::redo
