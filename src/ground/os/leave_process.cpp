// SPDX-License-Identifier: Apache-2.0
// A file apart, so that no library for other people's processes comes to contain exit().
#include "ground/os/leave_process.h"

#include <cstdlib>

#include "ground/os/self.h"

namespace firebreak::os {

void leave_process(int status) { std::exit(status); }

void leave_process_at_once(int status) { std::_Exit(status); }

}  // namespace firebreak::os
