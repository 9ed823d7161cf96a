// SPDX-License-Identifier: Apache-2.0
/// Facts of a terminal for a program that draws, and how a process leaves its own.
#pragma once

#include <cstddef>

#include "ground/base/result.h"

namespace firebreak::os {

struct TerminalSize {
  std::size_t columns = 80;
  std::size_t rows = 24;
};

/// Returns the size of the terminal behind descriptor `number`, as it is now; one that does not say has 80
/// columns and 24 rows. Unsupported: it is no terminal.
Result<TerminalSize> terminal_size(int number);

/// Makes this process have no controlling terminal: it reads from none, and may go on to write to one. It
/// stays in its process group: what a keyboard ends ends it as well. Called before there are other threads.
Status leave_terminal();

}  // namespace firebreak::os
