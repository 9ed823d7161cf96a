// SPDX-License-Identifier: Apache-2.0
// A tenant that does no wrong: launches a small kernel over and over and checks its counter.
// bystander LIMIT_S [EXPECTED_ERROR]: prints "running" when its first kernel is done, then how it ended. It
// works until the limit, or until its standard input has ended.
// 0: it ended as expected (with that CUDA error, or unharmed); 1: otherwise; 2: it could not start.
#include <poll.h>
#include <unistd.h>

#include <chrono>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <string>
#include <string_view>

#include "program/cuda/copy.h"
#include "program/cuda/device_buffer.h"
#include "program/cuda/first_gpu.h"
#include "program/cuda/module.h"
#include "program/cuda/stream.h"

namespace firebreak {
namespace {

constexpr std::string_view ptx = R"(.version 7.0
.target sm_70
.address_size 64

.visible .entry count(.param .u64 counter)
{
  .reg .u64 %counter;
  .reg .u32 %value;
  ld.param.u64 %counter, [counter];
  ld.u32 %value, [%counter];
  add.u32 %value, %value, 1;
  st.u32 [%counter], %value;
  ret;
}
)";

using Seconds = std::chrono::seconds;

bool told_to_end() {
  pollfd entry{STDIN_FILENO, POLLIN, 0};
  return poll(&entry, 1, 0) > 0;
}

/// What the driver answered in the end; CUDA_SUCCESS when it ended unharmed.
Result<CUresult> work(const cuda::Driver& driver, Seconds limit) {
  const auto module = cuda::Module::load_ptx(driver, ptx);
  if (!module) return propagate(module);
  const auto count = module->function("count");
  if (!count) return propagate(count);
  const auto counter = cuda::DeviceBuffer::allocate(driver, sizeof(std::uint32_t));
  if (!counter) return propagate(counter);
  const auto cleared = cuda::fill_words(driver, counter->address(), 0, 1);
  if (!cleared) return propagate(cleared);
  const auto stream = cuda::Stream::create(driver);
  if (!stream) return propagate(stream);

  const auto end = std::chrono::steady_clock::now() + limit;
  for (std::uint32_t turn = 1; std::chrono::steady_clock::now() < end; ++turn) {
    const bool last = told_to_end();
    CUdeviceptr address = counter->address();
    void* arguments[] = {&address};
    CUresult result = count->launch_packed(stream->handle(), cuda::LaunchShape{}, arguments);
    if (result == CUDA_SUCCESS) result = driver->cuStreamSynchronize(stream->handle());
    std::uint32_t value = 0;
    if (result == CUDA_SUCCESS) result = driver->cuMemcpyDtoH(&value, address, sizeof value);
    if (result != CUDA_SUCCESS) return result;
    if (value != turn) return fail(ErrorCode::Internal, "the counter is " + std::to_string(value));
    if (turn == 1) {
      std::puts("running");
      std::fflush(stdout);
    }
    if (last) break;
  }
  return CUDA_SUCCESS;
}

Result<CUresult> run(Seconds limit) {
  const auto gpu = cuda::FirstGpu::open();
  if (!gpu) return propagate(gpu);
  return work(gpu->driver(), limit);
}

}  // namespace
}  // namespace firebreak

int main(int argc, char** argv) {
  if (argc < 2) return 2;
  const int expected = argc > 2 ? std::atoi(argv[2]) : CUDA_SUCCESS;
  const auto result = firebreak::run(firebreak::Seconds(std::atoi(argv[1])));
  if (!result) {
    std::fprintf(stderr, "bystander: %s\n", to_string(result.error()).c_str());
    return 2;
  }
  std::printf("ended with CUDA error %d\n", static_cast<int>(*result));
  return *result == expected ? 0 : 1;
}
