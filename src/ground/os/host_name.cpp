// SPDX-License-Identifier: Apache-2.0
#include "ground/os/host_name.h"

#include <sys/utsname.h>

namespace firebreak::os {

std::string host_name() {
  utsname names{};
  return ::uname(&names) == 0 ? std::string(names.nodename) : std::string();
}

}  // namespace firebreak::os
