// SPDX-License-Identifier: Apache-2.0
/// Runs the program of one access for one launch. Internal to src/access.
#pragma once

#include <cstddef>
#include <optional>
#include <span>

#include "access/affine.h"
#include "access/launch.h"
#include "access/program.h"

namespace firebreak::access {

/// Where the access may start; nothing where it does not happen. `slots` has AddressProgram::slot_count
/// elements at least. Does not allocate.
std::optional<Affine> evaluate(const AddressProgram& program, const LaunchArguments& launch,
                               std::span<Affine> slots);

}  // namespace firebreak::access
