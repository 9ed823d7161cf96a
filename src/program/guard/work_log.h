// SPDX-License-Identifier: Apache-2.0
/// The books of a guarded process's launches (abi::GuardWork): which slot counts what, and which of them wait
/// for a marker behind them. Knows no driver; who puts the markers is CompletionMarkers.
#pragma once

#include <cstdint>
#include <map>
#include <mutex>
#include <string>
#include <utility>
#include <vector>

#include "shared/abi/cuda_driver.h"
#include "shared/abi/guard_page.h"

namespace firebreak::guard {

/// How a stream is ordered with others, which decides whether a marker may be put into it: an operation of
/// the legacy default stream and one of a blocking stream wait for each other, and a program that uses both
/// could wait for ever for what we ordered.
enum class StreamKind { Legacy, Blocking, Independent, PerThread };

/// Thread safe. Slots are the caller's thread's alone to count in.
class WorkLog {
 public:
  /// The page outlives it and has no other writer.
  explicit WorkLog(abi::GuardWork& work) : work_(work) {}

  /// Whoever counts, by any number of its own.
  using Thread = std::uintptr_t;
  /// Returns where a thread counts its launches into that stream; null: there is no slot left, and the page
  /// says so.
  abi::GuardLaunches* slot(Thread thread, CUstream stream, StreamKind kind);
  /// Its slots are others' to take over.
  void thread_ended(Thread thread);
  /// The index of a kernel's name; 0: there is no room, or no name.
  std::uint16_t kernel(const std::string& name);

  void note_blocking_stream();
  void note_gap(abi::GuardWorkGap gap) { work_.gaps.fetch_or(gap); }
  void capture_begins() { work_.captures.fetch_add(1); }
  void capture_ends() { work_.captures.fetch_sub(1); }
  bool is_capturing() const { return work_.captures.load() != 0; }
  /// True when launches find no slot any more.
  bool is_full() const { return (work_.gaps.load() & abi::GuardWorkSlotsFull) != 0; }

  /// A marker to put: `value` into done[slot], behind what is in `stream` now.
  struct Due {
    std::size_t slot = 0;
    CUstream stream = nullptr;
    std::uint32_t value = 0;
  };
  std::vector<Due> due() const;
  /// The same of one stream, before it goes.
  std::vector<Due> due_of(CUstream stream) const;
  void marked(const Due& due);
  /// Work behind which no marker may be put, in streams that anybody may ask after: what was launched into
  /// `stream` up to `value`.
  std::vector<Due> unmarked() const;
  /// What has not ended by now, as far as is known: of all streams, or of one as that thread sees it.
  std::vector<Due> under_way() const;
  std::vector<Due> under_way_in(Thread thread, CUstream stream) const;
  /// Its end was seen since: somebody has waited for it, or found the stream idle.
  void ended(const Due& due);
  /// The caller's slot, and all that it has begun there.
  void all_begun_ended(const abi::GuardLaunches& slot) {
    ended({static_cast<std::size_t>(&slot - work_.launches), nullptr, slot.begun.load()});
  }
  /// The handle may mean another stream from now on.
  void stream_gone(CUstream stream);
  /// The context is gone, and what was launched with it has ended.
  void all_ended();
  /// The end of a round of markers: what was done at the end of the one before is settled. True: something
  /// has changed since.
  bool settle();

 private:
  struct Owner {
    Thread thread = 0;  ///< 0: nobody
    CUstream stream = nullptr;
    StreamKind kind = StreamKind::Independent;
    bool has_stream = false;
    std::uint32_t done_before = 0;  ///< value at the end of the last round
  };

  bool is_idle(std::size_t slot) const;
  bool may_be_marked(const Owner& owner) const;
  /// Of those owners, what was launched and is not known to have ended.
  template <class IsMeant>
  std::vector<Due> under_way_of(const IsMeant& is_meant) const;
  bool wants_marker(std::size_t slot) const;
  std::size_t choose(CUstream stream) const;

  abi::GuardWork& work_;
  mutable std::mutex mutex_;  ///< guards what follows
  std::vector<Owner> owners_;
  std::map<std::pair<Thread, CUstream>, std::size_t> slots_;
  std::map<std::string, std::uint16_t> kernels_;
  bool legacy_used_ = false;
  bool blocking_seen_ = false;
};

}  // namespace firebreak::guard
