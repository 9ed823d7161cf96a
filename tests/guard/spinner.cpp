// SPDX-License-Identifier: Apache-2.0
/// A tenant whose kernel never ends. Says "spinning" once it runs, and waits for its own end.
#include <signal.h>
#include <unistd.h>

#include <array>
#include <atomic>
#include <cstdint>
#include <cstdio>
#include <cstring>

#include "cuda/first_gpu.h"
#include "cuda/module.h"
#include "cuda/pinned_buffer.h"
#include "cuda/stream.h"
#include "platform/platform.h"

namespace {

using namespace firebreak;

constexpr const char* ptx = R"(.version 7.0
.target sm_70
.address_size 64

.visible .entry spin(.param .u64 word)
{
  .reg .u64 %word;
  ld.param.u64 %word, [word];
  st.volatile.u32 [%word], 1;
again:
  bra again;
}
)";

Status spin() {
  const auto platform = platform::choose();
  if (!platform) return propagate(platform);
  const auto gpu = cuda::FirstGpu::open(platform->cuda_library);
  if (!gpu) return propagate(gpu);
  const auto module = cuda::Module::load_ptx(gpu->driver(), ptx);
  if (!module) return propagate(module);
  const auto function = module->function("spin");
  if (!function) return propagate(function);
  const auto word = cuda::PinnedBuffer::allocate(gpu->driver(), sizeof(std::uint32_t));
  if (!word) return propagate(word);
  const auto stream = cuda::Stream::create(gpu->driver());
  if (!stream) return propagate(stream);
  CUdeviceptr address = word->device_address();
  std::array<void*, 1> arguments{&address};
  const CUresult queued = function->launch_packed(stream->handle(), {}, arguments);
  if (queued != CUDA_SUCCESS) return fail(ErrorCode::Internal, gpu->driver().error_name(queued));
  const std::atomic_ref running(*reinterpret_cast<std::uint32_t*>(word->data()));
  while (running.load() == 0) ::usleep(1000);
  std::puts("spinning");
  std::fflush(stdout);
  for (;;) ::pause();
}

}  // namespace

int main(int count, char** arguments) {
  if (count > 1 && std::strcmp(arguments[1], "--stubborn") == 0) ::signal(SIGTERM, SIG_IGN);
  const Status spun = spin();
  std::printf("%s\n", spun ? "it has ended" : to_string(spun.error()).c_str());
  return 1;
}
