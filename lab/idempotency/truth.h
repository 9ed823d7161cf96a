// SPDX-License-Identifier: Apache-2.0
/// Whether a traced launch is idempotent: from what its threads did, not from what its code says.
#pragma once

#include <cstdint>
#include <span>

#include "softgpu/interpreter/interpreter.h"

namespace firebreak::idempotency {

struct TraceTruth {
  bool is_idempotent = true;
  bool has_atomic = false;
  std::uint64_t address = 0;     ///< of a byte that was written and may have been read before
  std::uint32_t read_line = 0;   ///< in the PTX text
  std::uint32_t write_line = 0;  ///< in the PTX text
};

/// Threads run in any order: a byte that any thread writes and any thread reads counts, unless all who read
/// it have written it themselves before.
TraceTruth find_truth(std::span<const softgpu::ObservedAccess> accesses);

}  // namespace firebreak::idempotency
