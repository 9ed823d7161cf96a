// SPDX-License-Identifier: Apache-2.0
// Apart from the rest of self.h, so that no library that uses the rest can end a process.
#include <cstdlib>

#include "os/self.h"

namespace firebreak::os {

void leave_process(int status) { std::exit(status); }

}  // namespace firebreak::os
