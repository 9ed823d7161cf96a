// SPDX-License-Identifier: Apache-2.0
/// Runs the program of one access for one launch. Internal to src/access.
#pragma once

#include <array>
#include <cstddef>
#include <optional>
#include <span>
#include <vector>

#include "access/affine.h"
#include "access/launch.h"
#include "access/program.h"

namespace firebreak::access {

/// Where the access may start; nothing where it does not happen. `slots` has AddressProgram::slot_count
/// elements at least. Does not allocate.
std::optional<Affine> evaluate(const AddressProgram& program, const LaunchArguments& launch,
                               std::span<Affine> slots);

/// Where an access certainly goes: it happens, at `address`, for all values of the launch's variables (thread
/// and block indices, loop counters) for which all of `at_least_zero` hold. The axes are these variables.
struct ExactPlace {
  static constexpr std::size_t most_constraints = 16;

  bool is_exact = false;  ///< false: nothing is shown
  bool happens = true;    ///< false: there are no such values
  Affine address;
  std::size_t constraint_count = 0;
  std::array<Affine, most_constraints> at_least_zero;
};

/// Of an access that is certain. Loops that are not counted, by `counted_loops`, go round once at least. Does
/// not allocate.
ExactPlace evaluate_exactly(const AddressProgram& program, const std::vector<bool>& counted_loops,
                            const LaunchArguments& launch, std::span<Affine> slots);

}  // namespace firebreak::access
