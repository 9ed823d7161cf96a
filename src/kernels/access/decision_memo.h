// SPDX-License-Identifier: Apache-2.0
/// Decisions that were made before: the same kernel with the same parameters that matter.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <vector>

#include "kernels/access/decision.h"

namespace firebreak::access {

/// A fixed number of places; a decision takes the place of another one. For one thread at a time.
class DecisionMemo {
 public:
  DecisionMemo();

  /// Decides as access::decide does. `memory_version` changes whenever `launch.memory` or
  /// `launch.variable_addresses` do. Summaries that were asked for must outlive the memo, or clear() comes in
  /// between.
  Decision decide(const KernelSummary& summary, const LaunchArguments& launch, std::uint64_t memory_version,
                  DecisionWorkspace& workspace);
  void clear();

  std::uint64_t hits() const { return hits_; }

 private:
  static constexpr std::size_t most_bytes = 224;  ///< parameters that matter; more: not kept
  struct Entry {
    const KernelSummary* summary = nullptr;
    std::uint64_t memory_version = 0;
    std::array<std::uint32_t, 6> shape{};
    std::array<std::byte, most_bytes> parameters{};
    Decision decision;
  };

  std::vector<Entry> entries_;
  std::uint64_t hits_ = 0;
};

}  // namespace firebreak::access
