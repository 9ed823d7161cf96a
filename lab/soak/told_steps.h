// SPDX-License-Identifier: Apache-2.0
/// A tenant's words on its steps over all its processes: they tell whether a committed step was ever lost.
#pragma once

#include <cstdint>
#include <vector>

#include "stage/step_mark.h"

namespace firebreak::soak {

/// A step is told once its commit has taken effect, so a step that is told twice was lost in between. Steps
/// that are told by nobody are those of a process that died between the two.
class ToldSteps {
 public:
  void hear(const stage::StepMark& mark);

  std::uint64_t steps_told() const { return told_; }
  /// Told more than once.
  const std::vector<std::uint64_t>& repeated() const { return repeated_; }
  /// The longest time in which no step was told, between the first and the last.
  std::int64_t longest_pause_ns() const { return longest_pause_ns_; }

 private:
  std::vector<bool> seen_;
  std::vector<std::uint64_t> repeated_;
  std::uint64_t told_ = 0;
  std::int64_t last_at_ns_ = 0;
  std::int64_t longest_pause_ns_ = 0;
};

}  // namespace firebreak::soak
