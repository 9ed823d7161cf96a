// SPDX-License-Identifier: Apache-2.0
/// Allocations that nobody computes with: for tenants of many. Each holds a word that says which it is, so
/// that whoever goes on knows whether it got the same ones.
#pragma once

#include <cstdint>
#include <vector>

#include "workloads/common/gpu.h"
#include "workloads/common/memory.h"

namespace firebreak::workloads {

class MoreMemory {
 public:
  Status allocate(Memory& memory, std::uint32_t count);
  /// Marks it by who begins the work.
  Status mark(const Gpu& gpu) const;
  /// Protocol: one is not what it was.
  Status check(const Gpu& gpu) const;

 private:
  std::vector<CUdeviceptr> addresses_;
};

}  // namespace firebreak::workloads
