// SPDX-License-Identifier: Apache-2.0
#include "os/fd.h"

#include <unistd.h>

namespace firebreak::os {

void Fd::reset() {
  if (number_ >= 0) ::close(std::exchange(number_, -1));
}

}  // namespace firebreak::os
