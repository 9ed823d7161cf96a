// SPDX-License-Identifier: Apache-2.0
/// A driver that lets nobody go on who loads it, and says so first: as one in a core dump that nobody reads.
#include <unistd.h>

__attribute__((constructor)) static void stand_still(void) {
  const ssize_t said = write(STDOUT_FILENO, "still", 5);
  for (;;) pause();
  (void)said;
}
