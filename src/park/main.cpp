// SPDX-License-Identifier: Apache-2.0
/// The parking client: a client of an MPS domain that does nothing. The agent starts it with the variables of
/// a tenant, in the core dump mode, and reads its dump only to let the domain fall (park/parking.h). It says
/// "ready" once it is one of the domain's clients, and ends when its standard input does.
#include <fmt/format.h>
#include <unistd.h>

#include <cstdio>

#include "cuda/first_gpu.h"

int main() {
  using namespace firebreak;
  const auto gpu = cuda::FirstGpu::open_small(2);
  if (!gpu) {
    fmt::print(stderr, "firebreak-parking-client: {}\n", to_string(gpu.error()));
    return 1;
  }
  if (const Status limited = gpu->context().set_limit(CU_LIMIT_STACK_SIZE, 0); !limited) {
    fmt::print(stderr, "firebreak-parking-client: {}\n", to_string(limited.error()));
    return 1;
  }
  std::puts("ready");
  std::fflush(stdout);
  char nothing = 0;
  while (::read(STDIN_FILENO, &nothing, 1) > 0) continue;
  return 0;
}
