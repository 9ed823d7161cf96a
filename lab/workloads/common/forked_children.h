// SPDX-License-Identifier: Apache-2.0
/// Children by fork(), as a data loader's workers are: they use no GPU, and have everything open that their
/// parent had.
#pragma once

#include <cstdint>

#include "ground/base/result.h"

namespace firebreak::workloads {

/// Children notice the parent's end by themselves, some seconds later, and end then.
Status fork_children(std::uint32_t count);

}  // namespace firebreak::workloads
