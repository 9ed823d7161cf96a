// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>

#include "ground/base/result.h"

namespace firebreak::workloads {

/// The forward state of a workload whose GPU memory holds everything else. Plain bytes: written by one
/// process and read by another of the same build.
struct StepState {
  std::uint64_t fingerprint = 0;  ///< hash of the options: a standby started with others refuses it
  std::uint64_t step = 0;         ///< the last step that is part of it

  std::span<const std::byte> bytes() const { return std::as_bytes(std::span(this, 1)); }

  /// Goes to what was committed last before `next_step`, which is at least 1. Protocol: the bytes are not a
  /// state, one of other options, or of another step; then nothing changes.
  Status restore(std::span<const std::byte> committed, std::uint64_t next_step);
};

}  // namespace firebreak::workloads
