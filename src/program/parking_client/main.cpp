// SPDX-License-Identifier: Apache-2.0
/// The parking client: a client of an MPS domain that does nothing by itself. The agent starts it with the
/// variables of a tenant, in the core dump mode, and reads its dump only to let the domain fall
/// (agent/parking/park/parking.h). It begins with the first byte of its standard input: by then the agent
/// knows its number, and takes it for nobody else. It says "ready" once it is one of the domain's clients,
/// and ends when its standard input does. For what comes there it runs one kernel: the GPU then has two
/// domains to work for, and takes turns.
#include <fmt/format.h>
#include <unistd.h>

#include <array>
#include <cstdint>
#include <cstdio>
#include <string_view>

#include "ground/os/leave_process.h"
#include "ground/os/self.h"
#include "ground/os/socket.h"
#include "program/cuda/first_gpu.h"
#include "program/cuda/module.h"
#include "program/cuda/stream.h"

namespace {

using namespace firebreak;

/// Longer than a turn of the GPU's (some 2 ms on an H100), so that the other domain has to make way.
constexpr std::uint64_t turn_ns = 5'000'000;
constexpr std::string_view turn_ptx = R"(.version 7.0
.target sm_70
.address_size 64

.visible .entry take_a_turn(.param .u64 duration_ns)
{
  .reg .u64 %duration, %begin, %now, %elapsed;
  .reg .u32 %looks;
  .reg .pred %again;
  ld.param.u64 %duration, [duration_ns];
  mov.u64 %begin, %globaltimer;
  mov.u32 %looks, 0;
look:
  mov.u64 %now, %globaltimer;
  sub.u64 %elapsed, %now, %begin;
  add.u32 %looks, %looks, 1;
  setp.lt.u64 %again, %elapsed, %duration;
  setp.lt.and.u32 %again, %looks, 1048576, %again;
  @%again bra look;
  ret;
}
)";

/// Whoever started us has gone, and nothing of us is to stay: not even where the driver holds all other
/// threads in a core dump that nobody reads.
Status end_with_the_input() {
  auto thread = os::start_thread([] {
    os::wait_for_end_of_input(STDIN_FILENO);
    os::leave_process_at_once(0);
  });
  if (!thread) return propagate(thread);
  thread->detach();
  return {};
}

bool is_told_to_begin() {
  char first = 0;
  return ::read(STDIN_FILENO, &first, 1) == 1;
}

Status serve() {
  const auto gpu = cuda::FirstGpu::open_small(2);
  if (!gpu) return propagate(gpu);
  if (const Status limited = gpu->context().set_limit(CU_LIMIT_STACK_SIZE, 0); !limited) return limited;
  const auto module = cuda::Module::load_ptx(gpu->driver(), turn_ptx);
  if (!module) return propagate(module);
  const auto take_a_turn = module->function("take_a_turn");
  if (!take_a_turn) return propagate(take_a_turn);
  const auto stream = cuda::Stream::create(gpu->driver());
  if (!stream) return propagate(stream);
  std::puts("ready");
  std::fflush(stdout);
  std::array<char, 64> wishes;
  while (::read(STDIN_FILENO, wishes.data(), wishes.size()) > 0) {
    if (take_a_turn->launch(stream->handle(), {}, turn_ns)) (void)stream->synchronize();
  }
  return {};
}

}  // namespace

int main() {
  Status served = end_with_the_input();
  if (served && !is_told_to_begin()) return 0;
  if (served) served = serve();
  if (!served) fmt::print(stderr, "firebreak-parking-client: {}\n", to_string(served.error()));
  return served ? 0 : 1;
}
