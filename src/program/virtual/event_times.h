// SPDX-License-Identifier: Apache-2.0
/// When the program's events were recorded. Each instance knows that of its own events alone, so the program
/// keeps the times of those of an instance that it leaves.
#pragma once

#include <array>
#include <atomic>
#include <cstdint>
#include <mutex>
#include <vector>

#include "program/virtual/instance.h"
#include "program/virtual/objects.h"

namespace firebreak::virtual_driver {

/// An event of an instance that is left, as its driver tells of it.
struct TimedEvent {
  double before_next_ms =
      0;  ///< of the one that was recorded next after it, or of the mark after the last one
  std::int64_t called_ns = 0;  ///< when the program asked for it to be recorded; 0: it is not known
};
/// Times of events in the order in which they were recorded, by the host's clock, where the mark after them
/// was put at that time. No event was recorded before the program asked for it.
std::vector<std::int64_t> times_of(const std::vector<TimedEvent>& events, std::int64_t mark_ns);

/// Thread safe. Nobody calls the driver while an instance is left. Whoever lets this do something in an
/// instance has no context current there afterwards.
class EventTimes {
 public:
  /// The program has an event that measures time.
  void begin() { is_any_.store(true, std::memory_order_relaxed); }
  /// True once it has one.
  bool is_any() const { return is_any_.load(std::memory_order_relaxed); }

  /// In the background: that instance gets what its mark needs, where the program measures time at all.
  void prepare(const Instance& instance, CUcontext context);
  /// Puts the mark, from which times in that instance are counted. Without a mark the times of calls have to
  /// do.
  void put_mark(const Instance& instance);
  /// Keeps the times of all events of an instance whose work has ended.
  void keep(Objects& objects, const Instance& left);
  /// The same of an instance that has died, which tells nothing any more.
  void keep_calls(Objects& objects);
  /// The program works in that instance from now on.
  void moved_to(const Instance& instance);
  /// What the instance has is gone.
  void forget(Slot slot);

  /// The program asks for the event to be recorded.
  static void note_call(Object* event, std::int64_t called_ns);
  /// By the clock of note_call().
  static std::int64_t call_ns();
  /// Answers cuEventElapsedTime() where the driver of the instance that works does not know of both events.
  CUresult elapsed(Objects& objects, const Instance& active, float* milliseconds, CUevent start, CUevent end);

 private:
  struct Mark {
    CUcontext context = nullptr;
    CUstream stream = nullptr;  ///< of its own: the mark waits for nobody
    CUevent event = nullptr;    ///< null: there is none
    std::int64_t put_ns = 0;    ///< 0: not yet
  };
  struct Found {
    Object* event;
    CUevent own;
    double before_mark_ms;
  };
  static std::vector<Found> find_all(Objects& objects, const Instance& left, CUevent mark);
  CUresult time_of(Objects& objects, const Instance& active, CUevent event, std::int64_t* time_ns);

  std::atomic<bool> is_any_{false};
  std::atomic<std::int64_t> moved_ns_{0};
  std::mutex mutex_;  ///< guards the marks; after all others
  std::array<Mark, slots_max> marks_{};
};

}  // namespace firebreak::virtual_driver
