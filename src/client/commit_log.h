// SPDX-License-Identifier: Apache-2.0
/// Commits in the shared page: what an active publishes, and what a promoted standby finds.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include "abi/shared_page.h"
#include "base/result.h"

namespace firebreak::client {

/// The newest whole commit.
struct Recovered {
  std::uint64_t next_step = 0;  ///< 0: nothing was committed
  std::vector<std::byte> state;
};

/// Finds the newest commit that is whole, for the process that becomes active in `epoch`. A predecessor that
/// fell before it could publish anything has left its own predecessor's commit untouched. Protocol when steps
/// were published but none is whole: never use it.
Result<Recovered> recover(const abi::SharedPage& page, std::uint32_t epoch);

/// Puts what was recovered into this epoch's own area, so that the next successor finds it there.
void adopt(abi::SharedPage& page, std::uint32_t epoch, const Recovered& recovered);

/// The area that the active of `epoch` writes.
inline abi::CommitArea& area_of(abi::SharedPage& page, std::uint32_t epoch) { return page.areas[epoch % 2]; }

}  // namespace firebreak::client
