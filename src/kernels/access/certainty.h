// SPDX-License-Identifier: Apache-2.0
/// Which accesses of a kernel happen in each thread whose conditions hold. Internal to src/kernels/access.
#pragma once

#include <optional>
#include <vector>

#include "kernels/access/program.h"

namespace firebreak::access {

/// Asks one kernel's flow graph. A launch that runs to its end leaves all its loops, so every way that goes
/// on long enough comes out of them.
class CertaintyFinder {
 public:
  explicit CertaintyFinder(const ThreadValues& values) : values_(values) {}

  /// Whether the access happens wherever all of `conditions` hold; with loop counters, in the iterations for
  /// which they hold. Says of each condition whether that depends on it.
  bool find(const MemoryAccess& access, std::vector<AccessCondition>& conditions);
  /// By loop: one test in each iteration, and no other way out.
  std::vector<bool> counted_loops() const;

 private:
  bool always_leads_to(std::uint32_t below);
  bool leads_to(std::uint32_t above, std::uint32_t below) const;
  bool comes_round(std::uint32_t block, std::uint32_t below) const;
  bool is_counted(std::size_t loop) const;

  const ThreadValues& values_;
  std::vector<std::optional<bool>> known_;  ///< by block: always_leads_to
};

}  // namespace firebreak::access
