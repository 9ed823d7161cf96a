// SPDX-License-Identifier: Apache-2.0
/// The first oracle for regions: is what may be done again so by its trace, and does a torn run of it, done
/// again from its start, come out equal?
#pragma once

#include <cstdint>
#include <random>
#include <string>
#include <vector>

#include "idempotency/sequence.h"
#include "kernels/regions/region_builder.h"

namespace firebreak::idempotency {

/// Operations [first, last) that are done again together.
struct PlannedRegion {
  std::size_t first = 0;
  std::size_t last = 0;
  bool depends_on_order = false;
  std::vector<std::vector<regions::ByteRange>> save_before;  ///< by operation
  bool operator==(const PlannedRegion&) const = default;
};

struct RegionCounts {
  std::uint64_t sequences = 0;
  std::uint64_t operations = 0;
  std::uint64_t alone = 0;  ///< operations that cannot be done again
  std::uint64_t regions = 0;
  std::uint64_t long_regions = 0;    ///< of several operations
  std::uint64_t only_in_region = 0;  ///< launches that may run again as a part of one, but not by themselves
  std::uint64_t saving = 0;          ///< operations before which something is saved
  std::uint64_t redone = 0;          ///< torn runs that were done again and came out equal
  std::uint64_t broken = 0;  ///< mutants: the plan of the unchanged kernels is wrong for them, by the trace
  std::string problem;       ///< the first: what must not be; empty: nothing
};

struct RegionOptions {
  std::uint64_t modules = 60;   ///< each of seven kernels
  std::uint64_t sequences = 8;  ///< of each
  bool with_mutants = false;    ///< one of the kernels is changed, and only the changed ones count
  std::uint64_t seed = 0;
};

/// Stops at the first problem.
RegionCounts check_random_regions(const RegionOptions& options);

std::string to_text(const RegionCounts& counts);

}  // namespace firebreak::idempotency
