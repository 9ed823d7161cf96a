// SPDX-License-Identifier: Apache-2.0
#pragma once

namespace firebreak::os {

/// Ends this process as if it had been killed: nothing that is to be done at the end is done, and what it
/// owns is left as it is. A process whose successor takes up what a killed one would have left ends so.
[[noreturn]] void leave_process_at_once(int status);

}  // namespace firebreak::os
