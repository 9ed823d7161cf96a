// SPDX-License-Identifier: Apache-2.0
/// Runs the program of one access for one launch. Internal to src/kernels/access.
#pragma once

#include <algorithm>
#include <array>
#include <cstddef>
#include <span>
#include <vector>

#include "kernels/access/affine.h"
#include "kernels/access/launch.h"
#include "kernels/access/program.h"

namespace firebreak::access {

/// The values that the steps of one kernel have made for one launch; reused for the next one.
struct StepValues {
  enum class State : std::uint8_t { NotRun, Made, Impossible };
  static constexpr std::size_t not_asked = ~std::size_t{0};

  std::vector<Affine> values;               ///< values by step
  std::vector<State> states;                ///< states by step. Impossible: what it asks for cannot be
  std::vector<std::size_t> possible_steps;  ///< counts by place: how many of its steps come before an
                                            ///< impossible one
  std::uint32_t left = 0;                   ///< steps that the answer may still cost

  /// Begins another launch, maybe of another kernel. Takes memory where it has more steps than any before.
  void begin(std::size_t step_count, std::size_t place_count, std::uint32_t budget_steps = ~0U);
  void take(std::uint32_t steps) { left -= std::min(left, steps); }
  bool is_spent() const { return left == 0; }
};

/// Runs what of a place has not run yet. False: its accesses do not happen. Else they start at the values of
/// AddressProgram::result; but where it is spent, nothing is known. Does not allocate.
bool evaluate(std::span<const ProgramStep> steps, std::span<const AccessPlace> places, std::size_t place,
              const LaunchArguments& launch, StepValues& values);

/// The place where an access certainly goes: it happens, at `address`, for all values of the launch's
/// variables (thread and block indices, loop counters) for which all of `at_least_zero` hold. The axes are
/// these variables.
struct ExactPlace {
  static constexpr std::size_t most_constraints = 16;

  bool is_exact = false;  ///< false: nothing is shown
  bool is_whole = false;  ///< the access goes nowhere else; false: a loop may do it in more rounds
  bool happens = true;    ///< false: there are no such values
  Affine address;
  std::size_t constraint_count = 0;
  std::array<Affine, most_constraints> at_least_zero;
};

/// Evaluates an access that is certain. Loops that are not counted, by `counted_loops`, go round once at
/// least. `values`: evaluate() found that it happens. `exact`: for it alone; whatever was there is lost.
ExactPlace evaluate_exactly(std::span<const ProgramStep> steps, const AccessPlace& place, StepIndex result,
                            const std::vector<bool>& counted_loops, const LaunchArguments& launch,
                            const StepValues& values, StepValues& exact);

}  // namespace firebreak::access
