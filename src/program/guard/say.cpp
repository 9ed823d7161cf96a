// SPDX-License-Identifier: Apache-2.0
#include "program/guard/say.h"

#include <cerrno>
#include <cstdio>

namespace firebreak::guard {

void say(const std::string& line) {
  const int before = errno;
  (void)std::fputs(("firebreak: " + line + "\n").c_str(), stderr);
  errno = before;
}

}  // namespace firebreak::guard
