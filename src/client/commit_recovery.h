// SPDX-License-Identifier: Apache-2.0
/// What a promoted standby finds in the commit journals.
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

#include "abi/commit_journal.h"
#include "base/result.h"

namespace firebreak::client {

/// The newest commit that has taken effect.
struct Recovered {
  std::uint64_t next_step = 0;  ///< 0: nothing was committed
  std::vector<std::byte> state;
};

/// The forward state for the process that becomes active in `epoch`, which needs epoch > 0. A predecessor
/// that fell before it could take over has left its own predecessor's untouched. Everything is copied, and
/// the copy verified: a fenced process that is still running may write there. Protocol when something is
/// torn, stale or corrupt: never use it.
///
/// One word is taken as it is, the GPU's next_step, since nothing else says what the GPU has done; where it
/// is less than was ever seen of it, or more than was queued, that is noticed too.
Result<Recovered> recover(const abi::SharedMemory& shared, std::uint64_t epoch);

}  // namespace firebreak::client
