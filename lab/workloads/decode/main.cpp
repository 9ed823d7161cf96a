// SPDX-License-Identifier: Apache-2.0
#include "workloads/common/program.h"
#include "workloads/decode/decode_workload.h"

int main(int argument_count, char** arguments) {
  using namespace firebreak::workloads;
  return run_program_or_end(
      {.name = "decode",
       .description = "A sample tenant: a small language model that answers several streams of requests.",
       .ptx = decode::ptx(),
       .create = decode::DecodeWorkload::create_from},
      argument_count, arguments);
}
