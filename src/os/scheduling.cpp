// SPDX-License-Identifier: Apache-2.0
#include "os/scheduling.h"

#include <sched.h>

#include <cerrno>

#include "os/errno_error.h"

namespace firebreak::os {

Status go_before_ordinary_threads() {
  sched_param parameter{};
  parameter.sched_priority = ::sched_get_priority_min(SCHED_FIFO);
  if (::sched_setscheduler(0, SCHED_FIFO | SCHED_RESET_ON_FORK, &parameter) == 0) return {};
  return fail_errno("wake up at once, also beside busy processes", errno);
}

}  // namespace firebreak::os
