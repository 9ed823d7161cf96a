// SPDX-License-Identifier: Apache-2.0
/// The budget of the analysis of one kernel. Internal to src/kernels/access.
#pragma once

#include <cstddef>
#include <cstdint>

namespace firebreak::access {

/// Steps of work, counted and not timed: the same kernel gets the same answer on every machine. A step is
/// what takes some 20 to 100 ns. What is spent stays spent; whoever sees that gives up.
class Budget {
 public:
  static constexpr std::uint64_t most_steps = 12'000'000;

  /// False: there are not so many left.
  bool take(std::uint64_t steps = 1) {
    left_ = steps < left_ ? left_ - steps : 0;
    return left_ != 0;
  }
  bool is_spent() const { return left_ == 0; }
  std::uint64_t taken() const { return most_steps - left_; }

 private:
  std::uint64_t left_ = most_steps;
};

/// Why a kernel is refused that has spent it.
inline constexpr const char* too_complicated = "it is too complicated";

}  // namespace firebreak::access
