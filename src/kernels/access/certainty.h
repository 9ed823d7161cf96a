// SPDX-License-Identifier: Apache-2.0
/// Finds the accesses of a kernel that happen in each thread whose conditions hold. Internal to
/// src/kernels/access.
#pragma once

#include <optional>
#include <vector>

#include "kernels/access/summary.h"

namespace firebreak::access {

/// Asks one kernel's flow graph. A launch that runs to its end leaves all its loops, so every way that goes
/// on long enough comes out of them.
class CertaintyFinder {
 public:
  /// Makes a finder; where the budget is spent nothing is certain.
  CertaintyFinder(const ThreadValues& values, Budget& budget) : values_(values), budget_(budget) {}

  /// True when the access happens wherever all of `conditions` hold; with loop counters, in the iterations
  /// for which they hold. Says of each condition whether that depends on it.
  bool find(const MemoryAccess& access, std::vector<AccessCondition>& conditions);
  /// Returns, by loop, whether it has one test in each iteration, once in it, and no other way out.
  const std::vector<bool>& counted_loops();
  /// True when the launch alone decides whether it happens, and where: no data, and no way that was taken.
  bool is_determined(const MemoryAccess& access, const AccessGroup& group);

 private:
  bool always_leads_to(std::uint32_t below);
  bool leads_to(std::uint32_t above, std::uint32_t below) const;
  bool comes_round(std::uint32_t block, std::uint32_t below) const;
  bool is_counted(std::size_t loop) const;
  bool has_unknown(ExpressionIndex predicate);
  void find_determined();
  bool is_determined(const Expression& node) const;

  const ThreadValues& values_;
  Budget& budget_;
  std::optional<std::vector<bool>> counted_;  ///< answers by loop
  std::vector<bool> determined_;              ///< answers by expression
  std::vector<std::optional<bool>> known_;    ///< answers of always_leads_to by block
};

}  // namespace firebreak::access
