// SPDX-License-Identifier: Apache-2.0
/// Events that measure time, and what they measure.
#pragma once

#include <array>
#include <cstdint>
#include <istream>
#include <string>
#include <utility>

#include "program/cuda/backend.h"

namespace firebreak::test {

/// One thread's, whose current context it needs.
class EventProgram {
 public:
  explicit EventProgram(const cuda::Backend& driver) : driver_(driver) {}

  /// make NUMBER FLAGS. record NUMBER: in a stream of the program's. wait NUMBER. elapsed FIRST SECOND: the
  /// bits of the time between them. is_right FIRST SECOND: 1 where that time is at most the host's, from
  /// before the first was recorded until the second had been waited for, and not negative.
  std::pair<CUresult, unsigned long long> run(const std::string& what, std::istream& words);

 private:
  struct Event {
    CUevent handle = nullptr;
    std::int64_t before_ns = 0;  ///< by the host's clock: before it was recorded
    std::int64_t after_ns = 0;   ///< and once it had been waited for
  };
  CUresult record(Event& event);
  bool is_right(const Event& first, const Event& second, float milliseconds) const;

  const cuda::Backend driver_;
  CUstream stream_ = nullptr;
  std::array<Event, 8> events_{};
};

}  // namespace firebreak::test
