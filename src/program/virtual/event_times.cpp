// SPDX-License-Identifier: Apache-2.0
#include "program/virtual/event_times.h"

#include <algorithm>

#include "ground/base/clock.h"
#include "program/virtual/current.h"

namespace firebreak::virtual_driver {
namespace {

std::int64_t now_ns() { return to_ns(SystemClock().now()); }

/// The nearest, without the C library's mathematics, which what goes into programs does without.
std::int64_t in_ns(double milliseconds) {
  return static_cast<std::int64_t>(milliseconds * 1e6 + (milliseconds < 0 ? -0.5 : 0.5));
}

}  // namespace

std::vector<std::int64_t> times_of(const std::vector<TimedEvent>& events, std::int64_t mark_ns) {
  std::vector<std::int64_t> times(events.size());
  std::int64_t next_ns = mark_ns;
  std::int64_t late_ns = 0;  // the mark was put so much later than it was said
  for (std::size_t i = events.size(); i-- > 0;) {
    next_ns -= in_ns(events[i].before_next_ms);
    times[i] = next_ns;
    late_ns = std::max(late_ns, events[i].called_ns - next_ns);
  }
  for (std::int64_t& time : times) time += late_ns;
  return times;
}

/// Whoever has another context by now gets another mark.
void EventTimes::prepare(const Instance& instance, CUcontext context) {
  if (!is_any_.load(std::memory_order_relaxed)) return;
  const std::lock_guard lock(mutex_);
  Mark& mark = marks_[instance.slot()];
  if (mark.event != nullptr && mark.context == context) return;
  const cuda::Backend& driver = instance.driver();
  Mark made{.context = context};
  const ContextScope scope(instance, context);
  if (!scope.is_current()) return;
  if (driver.cuStreamCreate(&made.stream, CU_STREAM_NON_BLOCKING) != CUDA_SUCCESS) return;
  if (driver.cuEventCreate(&made.event, CU_EVENT_DEFAULT) == CUDA_SUCCESS) mark = made;
}

void EventTimes::put_mark(const Instance& instance) {
  const std::lock_guard lock(mutex_);
  Mark& mark = marks_[instance.slot()];
  mark.put_ns = 0;
  if (mark.event == nullptr) return;
  const ContextScope scope(instance, mark.context);
  if (!scope.is_current()) return;
  const std::int64_t called_ns = now_ns();
  if (instance.driver().cuEventRecord(mark.event, mark.stream) == CUDA_SUCCESS) mark.put_ns = called_ns;
}

/// In the order in which they were recorded.
std::vector<EventTimes::Found> EventTimes::find_all(Objects& objects, const Instance& left, CUevent mark) {
  std::vector<Found> found;
  objects.for_each(Family::Event, [&](Object& event) {
    const auto own = reinterpret_cast<CUevent>(event.in[left.slot()].load());
    float before_ms = 0;
    const bool is_timed = event.time.is_measured.load() && own != nullptr;
    if (is_timed && left.driver().cuEventElapsedTime(&before_ms, own, mark) == CUDA_SUCCESS)
      found.push_back({&event, own, before_ms});
  });
  std::ranges::stable_sort(found, std::ranges::greater(), &Found::before_mark_ms);
  return found;
}

/// A time of hours is too coarse for two events that lie beside each other, so each is asked for by the next
/// one.
void EventTimes::keep(Objects& objects, const Instance& left) {
  if (!is_any_.load()) return;
  keep_calls(objects);
  const std::lock_guard lock(mutex_);
  const Mark& mark = marks_[left.slot()];
  if (mark.put_ns == 0) return;
  const cuda::Backend& driver = left.driver();
  const ContextScope scope(left, mark.context);
  if (!scope.is_current()) return;
  const std::vector<Found> found = find_all(objects, left, mark.event);
  std::vector<TimedEvent> events;
  for (std::size_t i = 0; i < found.size(); ++i) {
    const bool is_last = i + 1 == found.size();
    const double next_ms = is_last ? 0 : found[i + 1].before_mark_ms;
    float before_next_ms = 0;
    const bool is_known = driver.cuEventElapsedTime(&before_next_ms, found[i].own,
                                                    is_last ? mark.event : found[i + 1].own) == CUDA_SUCCESS;
    events.push_back({is_known ? before_next_ms : found[i].before_mark_ms - next_ms,
                      found[i].event->time.called_ns.load()});
  }
  const auto times = times_of(events, mark.put_ns);
  for (std::size_t i = 0; i < found.size(); ++i) found[i].event->time.kept_ns.store(times[i]);
}

/// Those of an instance before this one are known better already.
void EventTimes::keep_calls(Objects& objects) {
  if (!is_any_.load()) return;
  const std::int64_t moved_ns = moved_ns_.load();
  objects.for_each(Family::Event, [&](Object& event) {
    const std::int64_t called_ns = event.time.called_ns.load();
    if (event.time.is_measured.load() && called_ns > moved_ns) event.time.kept_ns.store(called_ns);
  });
}

void EventTimes::moved_to(const Instance& instance) {
  if (!is_any_.load()) return;
  put_mark(instance);
  moved_ns_.store(now_ns());
}

void EventTimes::forget(Slot slot) {
  const std::lock_guard lock(mutex_);
  marks_[slot] = {};
}

std::int64_t EventTimes::call_ns() { return now_ns(); }

void EventTimes::note_call(Object* event, std::int64_t called_ns) {
  if (event != nullptr && event->time.is_measured.load(std::memory_order_relaxed))
    event->time.called_ns.store(called_ns, std::memory_order_relaxed);
}

/// When it was recorded last. What the driver would answer of an event that was not recorded.
CUresult EventTimes::time_of(Objects& objects, const Instance& active, CUevent event, std::int64_t* time_ns) {
  const Object* const object = objects.find(Family::Event, number_of(event));
  if (object == nullptr || !object->time.is_measured.load()) return CUDA_ERROR_INVALID_HANDLE;
  const CUevent own = objects.translate(event, active.slot());
  const cuda::Backend& driver = active.driver();
  const std::lock_guard lock(mutex_);
  if (const Mark& mark = marks_[active.slot()]; mark.put_ns != 0) {
    float since_ms = 0;
    CUresult asked = driver.cuEventElapsedTime(&since_ms, mark.event, own);
    // The mark waits for nobody, so it is there at once.
    if (asked == CUDA_ERROR_NOT_READY && driver.cuEventSynchronize(mark.event) == CUDA_SUCCESS)
      asked = driver.cuEventElapsedTime(&since_ms, mark.event, own);
    *time_ns = mark.put_ns + in_ns(since_ms);
    if (asked != CUDA_ERROR_INVALID_HANDLE) return asked;
  }
  const std::int64_t called_ns = object->time.called_ns.load();
  if (called_ns > moved_ns_.load()) {
    *time_ns = called_ns;
    return driver.cuEventQuery(own);
  }
  *time_ns = object->time.kept_ns.load();
  return *time_ns == 0 ? CUDA_ERROR_INVALID_HANDLE : CUDA_SUCCESS;
}

CUresult EventTimes::elapsed(Objects& objects, const Instance& active, float* milliseconds, CUevent start,
                             CUevent end) {
  if (moved_ns_.load() == 0) return CUDA_ERROR_INVALID_HANDLE;
  std::int64_t start_ns = 0;
  std::int64_t end_ns = 0;
  CUresult known = time_of(objects, active, start, &start_ns);
  if (known == CUDA_SUCCESS) known = time_of(objects, active, end, &end_ns);
  if (known == CUDA_SUCCESS) *milliseconds = static_cast<float>(static_cast<double>(end_ns - start_ns) / 1e6);
  return known;
}

}  // namespace firebreak::virtual_driver
