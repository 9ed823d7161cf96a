// SPDX-License-Identifier: Apache-2.0
/// Finds what a promoted standby needs in the commit journals.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <vector>

#include "ground/base/result.h"
#include "shared/abi/commit_journal.h"

namespace firebreak::journal {

/// The newest commit that has taken effect.
struct Recovered {
  std::uint64_t next_step = 0;  ///< 0: nothing was committed
  std::vector<std::byte> state;
  std::optional<std::size_t> journal = {};  ///< journal in which it was found
};

/// The forward state for the process that becomes active in `epoch`: that of whoever was in office last, in
/// whichever journal, however many were to follow and never came there. Everything is copied, and the copy
/// verified: a fenced process that is still running may write there. Protocol when something is torn, stale
/// or corrupt, or a later epoch's: never use it.
///
/// One word is taken as it is, the GPU's next_step, since nothing else says what the GPU has done; where it
/// is less than was ever seen of it, or more than was queued, that is noticed too.
Result<Recovered> recover(const abi::SharedMemory& shared, std::uint64_t epoch);

}  // namespace firebreak::journal
