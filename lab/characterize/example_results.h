// SPDX-License-Identifier: Apache-2.0
/// Example data for tests: a kind, a run of it that is as expected, and results that hold both.
#pragma once

#include "characterize/result.h"

namespace firebreak::characterize::example {

/// An illegal address: ends faulter and co-client, Xid 31, first told by UVM.
Expected expected(const std::string& kind = "stray-store");

/// The run is as expected: UVM after 1 ms, the faulter's error after 2, Xid after 3, the co-client's error
/// after 4.
Run run(const std::string& kind = "stray-store", int repeat = 1);

/// `repeat` runs of each kind.
Results results(const std::vector<std::string>& kinds, int repeat);

}  // namespace firebreak::characterize::example
