// SPDX-License-Identifier: Apache-2.0
#include "workloads/common/program.h"
#include "workloads/scribble/scribble_workload.h"

int main(int argument_count, char** arguments) {
  using namespace firebreak::workloads;
  return run_program_or_end(
      {.name = "scribble",
       .description = "The fence's adversary: writes as fast as it can, and finds what others write.",
       .ptx = scribble::ptx(),
       .create = scribble::ScribbleWorkload::create_from},
      argument_count, arguments);
}
