// SPDX-License-Identifier: Apache-2.0
/// The writer of a guard page (shared/abi/guard_page.h): what the guard ranges cover, what was allocated and
/// freed.
#pragma once

#include <cstdint>
#include <deque>
#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <string>

#include "ground/base/clock.h"
#include "ground/base/result.h"
#include "ground/os/fd.h"
#include "ground/os/memory.h"
#include "shared/abi/guard_page.h"

namespace firebreak::guard {

/// Thread safe. Keeps the page's descriptor open: that is where the outside finds it.
class Ledger {
 public:
  static Result<Ledger> create();

  void set_state(abi::GuardState state, const std::string& note);
  /// True when somebody outside hears strays.
  bool is_heard() const { return page().heard.load(std::memory_order_acquire) != 0; }

  /// Notes an allocation; returns which allocating call of this process it was, from 1.
  std::uint64_t allocated(abi::GuardFunction function, std::uint64_t address, std::uint64_t size_bytes);
  /// Notes a freeing. Where nobody allocated anything it counts as a call, and no more.
  void freed(std::uint64_t address);
  /// Notes the freeing, by one call, of all that begin in [begin, end).
  void freed_within(std::uint64_t begin, std::uint64_t end);

  /// The guard ranges cover [begin, end) from now on, and in sum `guard_range_bytes`. False: the page has no
  /// room for another range.
  bool covered(std::uint64_t begin, std::uint64_t end, std::uint64_t guard_range_bytes);
  /// Exactly that range is covered no longer.
  void uncovered(std::uint64_t begin, std::uint64_t end, std::uint64_t guard_range_bytes, Monotonic when);
  void set_guard_range_bytes(std::uint64_t bytes);

  /// Returns the place where launches are counted; for one WorkLog.
  abi::GuardWork& work() { return page().work; }

  int descriptor() const { return descriptor_.get(); }
  /// Closes it in a child of fork(): the page is the parent's.
  void close_descriptor() { descriptor_.reset(); }

 private:
  Ledger(os::Fd descriptor, os::Mapping mapping)
      : descriptor_(std::move(descriptor)), mapping_(std::move(mapping)) {}
  abi::GuardPage& page() const { return *mapping_.as<abi::GuardPage>(); }
  /// A slot that was never used, else the one whose allocation was freed first; empty: all are alive.
  std::optional<std::size_t> choose_slot();
  abi::GuardRange* choose_range();
  void mark_freed(std::size_t slot, std::uint64_t call);

  os::Fd descriptor_;
  os::Mapping mapping_;
  struct Books {
    std::mutex mutex;
    std::map<std::uint64_t, std::size_t> slots;  ///< slots of what is alive, by address
    std::deque<std::size_t> freed;               ///< slots in the order of their freeing
  };
  std::unique_ptr<Books> books_ = std::make_unique<Books>();
};

}  // namespace firebreak::guard
