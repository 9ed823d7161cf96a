// SPDX-License-Identifier: Apache-2.0
// A file apart, so that no library for other people's processes comes to contain exit().
#include <cstdlib>

#include "os/self.h"

namespace firebreak::os {

void leave_process(int status) { std::exit(status); }

}  // namespace firebreak::os
