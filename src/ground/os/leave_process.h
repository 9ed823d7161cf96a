// SPDX-License-Identifier: Apache-2.0
#pragma once

namespace firebreak::os {

/// As if this process had been killed: nothing that is to be done at the end is done, and what it owns is
/// left as it is. For one whose successor takes up what a killed one would have left.
[[noreturn]] void leave_process_at_once(int status);

}  // namespace firebreak::os
