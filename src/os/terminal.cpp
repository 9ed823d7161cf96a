// SPDX-License-Identifier: Apache-2.0
#include "os/terminal.h"

#include <sys/ioctl.h>
#include <unistd.h>

namespace firebreak::os {

Result<TerminalSize> terminal_size(int number) {
  if (::isatty(number) != 1) return fail(ErrorCode::Unsupported, "that is no terminal");
  winsize found{};
  if (::ioctl(number, TIOCGWINSZ, &found) != 0 || found.ws_col == 0 || found.ws_row == 0)
    return TerminalSize();
  return TerminalSize{found.ws_col, found.ws_row};
}

}  // namespace firebreak::os
