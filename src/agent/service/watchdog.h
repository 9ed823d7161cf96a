// SPDX-License-Identifier: Apache-2.0
/// Judges whether a service hangs, by the signs of life that it gives. Pure.
#pragma once

#include <algorithm>

#include "ground/base/clock.h"

namespace firebreak::agent {

/// Time that nobody looked does not count as silence: whoever was kept from looking (a machine that was
/// suspended or has too much to do, a supervisor that was stopped) does not know whether the service was,
/// too.
class Watchdog {
 public:
  static constexpr int looks = 5;
  /// Largest multiple of the first limit. A tenant that can make one agent hang can make the next one hang,
  /// too, and nobody is served until that one is given up: what it could gain by that has a small bound.
  static constexpr int longest = 2;
  static constexpr int forgets = 30;  ///< multiple of the first limit, likewise

  /// `limit`: of silence; 0: it may be silent for ever.
  explicit Watchdog(Nanoseconds limit) : first_limit_(limit), limit_(limit) {}

  bool is_on() const { return limit_ > Nanoseconds(0); }
  /// How often somebody is to look.
  Nanoseconds between_looks() const { return first_limit_ / looks; }

  /// A service has been started. It may take its time, as one that waits for a driver does: until it is up,
  /// its signs say nothing, and are not missed.
  void started() { is_up_ = false; }
  void came_up(Monotonic now) {
    is_up_ = true;
    came_up_ = now;
    note_sign(now);
  }
  void note_sign(Monotonic now) {
    silence_ = Nanoseconds(0);
    looked_ = now;
    if (is_up_ && now - came_up_ >= forgets * first_limit_) limit_ = first_limit_;
  }
  /// The service will give no sign any more.
  void signs_end() { is_up_ = false; }
  /// Notes that the service is killed for its silence. Those after it may be silent for twice as long, and no
  /// longer: a turn may have taken that time because there was so much to do. One that has lived for long has
  /// shown that it does not.
  void gives_up() {
    signs_end();
    limit_ = std::min(2 * limit_, longest * first_limit_);
  }
  Nanoseconds limit() const { return limit_; }
  /// Looks.
  bool hangs(Monotonic now) {
    if (!is_on() || !is_up_) return false;
    silence_ += std::min(now - looked_, 2 * between_looks());
    looked_ = now;
    return silence_ >= limit_;
  }

 private:
  Nanoseconds first_limit_;
  Nanoseconds limit_;
  Nanoseconds silence_{};
  Monotonic looked_{};
  Monotonic came_up_{};
  bool is_up_ = false;
};

}  // namespace firebreak::agent
