// SPDX-License-Identifier: Apache-2.0
/// Time, replaceable. Every timestamp of the project is CLOCK_MONOTONIC in nanoseconds, so that
/// figures taken in different processes of one machine can be subtracted.
#pragma once

#include <chrono>
#include <cstdint>

namespace firebreak {

using Nanoseconds = std::chrono::nanoseconds;
using Milliseconds = std::chrono::milliseconds;
/// libstdc++'s steady_clock is CLOCK_MONOTONIC.
using Monotonic = std::chrono::time_point<std::chrono::steady_clock, Nanoseconds>;

/// Thread safe.
class Clock {
 public:
  virtual ~Clock() = default;
  virtual Monotonic now() const = 0;
};

class SystemClock final : public Clock {
 public:
  Monotonic now() const override { return std::chrono::steady_clock::now(); }
};

/// Stands still until told; for tests. Not thread safe.
class FakeClock final : public Clock {
 public:
  Monotonic now() const override { return now_; }
  void advance(Nanoseconds by) { now_ += by; }

 private:
  Monotonic now_{};
};

inline std::int64_t to_ns(Monotonic time) { return time.time_since_epoch().count(); }
inline Monotonic from_ns(std::int64_t ns) { return Monotonic(Nanoseconds(ns)); }
inline double to_ms(Nanoseconds duration) { return static_cast<double>(duration.count()) / 1e6; }

}  // namespace firebreak
