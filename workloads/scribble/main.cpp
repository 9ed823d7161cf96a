// SPDX-License-Identifier: Apache-2.0
#include <cstdlib>

#include "workloads/common/program.h"
#include "workloads/scribble/scribble_workload.h"

int main(int argument_count, char** arguments) {
  using namespace firebreak::workloads;
  const int status = run_program(
      {.name = "scribble",
       .description = "The fence's adversary: writes as fast as it can, and finds what others write.",
       .ptx = scribble::ptx(),
       .create = scribble::ScribbleWorkload::create_from},
      argument_count, arguments);
  // Whoever fails has not left its session: it ends as it is, at once, and the agent finds it dead.
  if (status != 0) std::_Exit(status);
  return 0;
}
