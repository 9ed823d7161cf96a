// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "agent/faults/strays/stray.h"
#include "agent/faults/watch/page_fault.h"
#include "shared/guard_page/guard_view.h"

namespace firebreak::strays {

/// The strays of one process: which of its page faults are any, and which of them are news. No clock, no I/O.
class StrayBook {
 public:
  /// Blocks that are remembered, and told; further ones are only counted.
  static constexpr std::size_t blocks_max = 4096;

  /// True: there is something to confirm, and was nothing before.
  bool note(const watch::PageFault& page_fault, const guard::GuardView& guard);
  /// A fatal fault at this address: what was noted there was not contained.
  void note_fatal(std::uint64_t address);

  /// A fatal fault would have come by now for whatever waited at the last call, or before anything else did:
  /// the strays to tell.
  std::vector<Stray> confirm(const guard::GuardView& guard);
  bool is_waiting() const { return !ripe_.empty(); }

  std::uint64_t count() const { return count_; }
  std::uint64_t blocks() const { return told_; }

 private:
  std::set<std::uint64_t> blocks_;
  struct Noted {
    watch::PageFault page_fault;
    std::string kernels;  ///< kernels that ran then, in words
  };
  std::vector<Noted> ripe_;   ///< faults that the next call confirms
  std::vector<Noted> fresh_;  ///< faults that the call after it confirms; none without a ripe one
  std::uint64_t count_ = 0;
  std::uint64_t told_ = 0;
};

}  // namespace firebreak::strays
