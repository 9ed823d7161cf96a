// SPDX-License-Identifier: Apache-2.0
/// A tenant whose kernel never ends. Says "spinning" once it runs, and waits for its own end, or for a signal
/// that says which: SIGUSR1 exit(), SIGUSR2 exec(), SIGALRM it takes 1 GiB of memory.
#include <signal.h>
#include <unistd.h>

#include <array>
#include <atomic>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <string>

#include "gpu/either_gpu.h"
#include "ground/platform/platform.h"
#include "program/cuda/device_buffer.h"
#include "program/cuda/first_gpu.h"
#include "program/cuda/module.h"
#include "program/cuda/pinned_buffer.h"
#include "program/cuda/stream.h"

namespace {

using namespace firebreak;

constexpr const char* ptx = R"(.version 7.0
.target sm_70
.address_size 64

.visible .entry spin(.param .u64 word)
{
again:
  bra again;
}

.visible .entry stray(.param .u64 word)
{
  .reg .u64 %word;
  ld.param.u64 %word, [word];
  st.volatile.u32 [%word], 1;
again:
  bra again;
}

.visible .entry nothing(.param .u64 word)
{
  .reg .u64 %word;
  ld.param.u64 %word, [word];
  st.volatile.u32 [%word], 1;
  ret;
}
)";

void say_spinning() {
  std::puts("spinning");
  std::fflush(stdout);
}

/// One short kernel in each of so many streams, which stay.
Status use_streams(const cuda::Driver& driver, const cuda::Function& nothing, int count, void** arguments) {
  for (int n = 0; n < count; ++n) {
    CUstream stream = nullptr;
    if (Status made = driver.check(driver->cuStreamCreateWithPriority(&stream, CU_STREAM_NON_BLOCKING, 0),
                                   "cuStreamCreateWithPriority");
        !made)
      return made;
    const CUresult queued = nothing.launch_packed(stream, {}, {arguments, 1});
    if (Status launched = driver.check(queued, "cuLaunchKernel"); !launched) return launched;
  }
  return {};
}

/// The stream has come to its kernel when this is seen. The kernel itself writes nothing: on the software GPU
/// nobody finishes what a dead process would have written.
Status greet(const cuda::Driver& driver, const cuda::Stream& stream, CUdeviceptr word) {
  return driver.check(driver->cuStreamWriteValue32(stream.handle(), word, 1, 0), "cuStreamWriteValue32");
}

/// A copy and a fill that wait for somebody who never comes. No kernel.
Status hold_copies(const cuda::Driver& driver, const cuda::Stream& stream, CUdeviceptr word,
                   CUdeviceptr memory) {
  constexpr std::size_t half_bytes = std::size_t{1} << 20;
  CUresult queued = driver->cuStreamWaitValue32(stream.handle(), word, 1, CU_STREAM_WAIT_VALUE_EQ);
  if (queued == CUDA_SUCCESS)
    queued = driver->cuMemcpyDtoDAsync(memory, memory + half_bytes, half_bytes, stream.handle());
  if (queued == CUDA_SUCCESS) queued = driver->cuMemsetD8Async(memory, 1, half_bytes, stream.handle());
  return driver.check(queued, "a copy");
}

/// A kernel in a stream that waits for the legacy default stream, and a copy there. Both end.
Status copy_beside_kernel(const cuda::Driver& driver, const cuda::Function& nothing, CUdeviceptr memory,
                          void** arguments) {
  CUstream blocking = nullptr;
  CUresult result = driver->cuStreamCreateWithPriority(&blocking, CU_STREAM_DEFAULT, 0);
  if (result == CUDA_SUCCESS) result = nothing.launch_packed(blocking, {}, {arguments, 1});
  if (result == CUDA_SUCCESS) result = driver->cuMemcpyDtoD(memory, memory + 64, 64);
  if (result == CUDA_SUCCESS) result = nothing.launch_packed(blocking, {}, {arguments, 1});
  return driver.check(result, "a copy beside a kernel");
}

constexpr std::array ends{SIGUSR1, SIGUSR2, SIGALRM};

/// Before other threads start.
sigset_t hold_signals() {
  sigset_t held;
  ::sigemptyset(&held);
  for (const int signal : ends) ::sigaddset(&held, signal);
  ::pthread_sigmask(SIG_BLOCK, &held, nullptr);
  return held;
}

/// More than any limit that a test sets, and no more than a machine has.
void take_memory() {
  constexpr std::size_t piece_bytes = std::size_t{1} << 20;
  for (int piece_count = 0; piece_count < 1024; ++piece_count) {
    auto* piece = static_cast<char*>(std::malloc(piece_bytes));
    if (piece != nullptr) std::memset(piece, 1, piece_bytes);
  }
}

[[noreturn]] void wait_for_an_end(const sigset_t& held) {
  for (;;) {
    int signal = 0;
    if (::sigwait(&held, &signal) != 0) continue;
    if (signal == SIGUSR1) std::exit(0);
    if (signal == SIGUSR2) ::execlp("sleep", "sleep", "1000", nullptr);
    if (signal == SIGALRM) take_memory();
  }
}

/// "--queue": more work waits behind the kernel. "--finite": it ends. "--streams": there are many others.
/// "--sleeps", "--synchronizes": it waits so while the kernel runs, and says it when it comes back.
/// "--copies", "--beside": no kernel spins, and there are copies. "--stray": it is launched when somebody
/// says so, and strays first. Returns only where something fails: a stream, and what it works on, are to be
/// there until the end.
Status spin(const std::string& what, const sigset_t& held) {
  const auto platform = gpu::choose_either();
  if (!platform) return propagate(platform);
  const auto gpu = cuda::FirstGpu::open(platform->cuda_library);
  if (!gpu) return propagate(gpu);
  const auto module = cuda::Module::load_ptx(gpu->driver(), ptx);
  if (!module) return propagate(module);
  const auto function = module->function(what == "--finite"  ? "nothing"
                                         : what == "--stray" ? "stray"
                                                             : "spin");
  const auto nothing = module->function("nothing");
  if (!function || !nothing) return fail(ErrorCode::Internal, "no kernel");
  const auto word = cuda::PinnedBuffer::allocate(gpu->driver(), sizeof(std::uint32_t));
  if (!word) return propagate(word);
  const auto stream = cuda::Stream::create(gpu->driver());
  if (!stream) return propagate(stream);
  CUdeviceptr address = word->device_address();
  std::array<void*, 1> arguments{&address};
  if (what == "--streams") {
    if (Status used = use_streams(gpu->driver(), *nothing, 200, arguments.data()); !used) return used;
    if (Status idle = gpu->context().synchronize(); !idle) return idle;
  }
  const auto buffer = cuda::DeviceBuffer::allocate(gpu->driver(), std::size_t{2} << 20);
  if (!buffer) return propagate(buffer);
  if (what == "--copies" || what == "--beside") {
    const Status done =
        what == "--copies" ? hold_copies(gpu->driver(), *stream, address, buffer->address())
                           : copy_beside_kernel(gpu->driver(), *nothing, buffer->address(), arguments.data());
    if (!done) return done;
    say_spinning();
    wait_for_an_end(held);
  }
  if (what == "--stray") {
    address = buffer->address() + buffer->size_bytes();
    say_spinning();
    std::getchar();
  }
  if (what != "--stray") {
    if (Status greeted = greet(gpu->driver(), *stream, address); !greeted) return greeted;
  }
  const CUresult queued = function->launch_packed(stream->handle(), {}, arguments);
  if (queued == CUDA_SUCCESS && what == "--queue")
    (void)function->launch_packed(stream->handle(), {}, arguments);
  if (queued != CUDA_SUCCESS) return fail(ErrorCode::Internal, gpu->driver().error_name(queued));
  if (what == "--stray") wait_for_an_end(held);
  const std::atomic_ref running(*reinterpret_cast<std::uint32_t*>(word->data()));
  while (running.load() == 0) ::usleep(1000);
  say_spinning();
  if (what == "--sleeps") ::sleep(600);
  if (what == "--synchronizes") (void)gpu->driver()->cuStreamSynchronize(stream->handle());
  if (what == "--sleeps" || what == "--synchronizes") return fail(ErrorCode::Internal, "came back");
  wait_for_an_end(held);
}

}  // namespace

int main(int count, char** arguments) {
  if (count > 1 && std::strcmp(arguments[1], "--stubborn") == 0) ::signal(SIGTERM, SIG_IGN);
  const sigset_t held = hold_signals();
  const Status spun = spin(count > 1 ? arguments[1] : "", held);
  std::printf("%s\n", to_string(spun.error()).c_str());
  return 1;
}
