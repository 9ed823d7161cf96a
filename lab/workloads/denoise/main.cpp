// SPDX-License-Identifier: Apache-2.0
#include "workloads/common/program.h"
#include "workloads/denoise/denoise_workload.h"

int main(int argument_count, char** arguments) {
  using namespace firebreak::workloads;
  return run_program_or_end(
      {.name = "denoise",
       .description = "A sample tenant: a diffusion sampler that turns noise into a picture.",
       .ptx = denoise::ptx(),
       .create = denoise::DenoiseWorkload::create_from},
      argument_count, arguments);
}
