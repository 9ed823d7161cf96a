// SPDX-License-Identifier: Apache-2.0
/// A tenant that knows nothing of Firebreak, with one kernel that fills the GPU. Its blocks come to their end
/// once somebody says so on standard input. Says "working" when the kernel is on the GPU, and at the end
/// "right" where each word of the result is, or what is wrong. "--stay": then it has no context any more, and
/// waits for another line before it ends.
#include <unistd.h>

#include <atomic>
#include <cstdint>
#include <cstdio>
#include <iostream>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "gpu/either_gpu.h"
#include "ground/platform/platform.h"
#include "program/cuda/copy.h"
#include "program/cuda/device_buffer.h"
#include "program/cuda/first_gpu.h"
#include "program/cuda/module.h"
#include "program/cuda/pinned_buffer.h"
#include "program/cuda/stream.h"

namespace {

using namespace firebreak;

/// Eight on each multiprocessor of an H100.
constexpr unsigned int block_count = 1056;
constexpr const char* ptx = R"(.version 7.0
.target sm_70
.address_size 64

// The first word behind the gate says that a block has begun. Each writes its number, from 1.
.visible .entry gated(.param .u64 gate, .param .u64 words)
{
  .reg .u64 %gate, %at;
  .reg .u32 %i, %open;
  .reg .pred %shut;
  ld.param.u64 %gate, [gate];
  st.volatile.global.u32 [%gate+4], 1;
look:
  ld.volatile.global.u32 %open, [%gate];
  setp.eq.u32 %shut, %open, 0;
  @%shut bra look;
  mov.u32 %i, %ctaid.x;
  mul.wide.u32 %at, %i, 4;
  ld.param.u64 %gate, [words];
  add.u64 %at, %gate, %at;
  add.u32 %i, %i, 1;
  st.global.u32 [%at], %i;
  ret;
}
)";

void say(const char* words) {
  std::puts(words);
  std::fflush(stdout);
}

std::size_t wrong_words(std::span<const std::uint32_t> result) {
  std::size_t wrong = 0;
  for (std::uint32_t i = 0; i < result.size(); ++i) wrong += result[i] != i + 1 ? 1 : 0;
  return wrong;
}

std::string read_line() {
  std::string line;
  std::getline(std::cin, line);
  return line;
}

Status play() {
  const auto platform = gpu::choose_either();
  if (!platform) return propagate(platform);
  const auto gpu = cuda::FirstGpu::open(platform->cuda_library);
  if (!gpu) return propagate(gpu);
  const auto module = cuda::Module::load_ptx(gpu->driver(), ptx);
  if (!module) return propagate(module);
  const auto gated = module->function("gated");
  if (!gated) return propagate(gated);
  const auto gate = cuda::PinnedBuffer::allocate(gpu->driver(), 2 * sizeof(std::uint32_t));
  if (!gate) return propagate(gate);
  const auto stream = cuda::Stream::create(gpu->driver());
  if (!stream) return propagate(stream);
  std::vector<std::uint32_t> result(block_count);
  const auto words = cuda::DeviceBuffer::allocate(gpu->driver(), result.size() * sizeof(std::uint32_t));
  if (!words) return propagate(words);
  const cuda::LaunchShape shape{{block_count, 1, 1}, {1, 1, 1}};
  if (Status launched = gated->launch(stream->handle(), shape, gate->device_address(), words->address());
      !launched)
    return launched;
  auto* const host = reinterpret_cast<std::uint32_t*>(gate->data());
  while (std::atomic_ref(host[1]).load() == 0) ::usleep(1000);
  say("working");
  (void)read_line();
  std::atomic_ref(host[0]).store(1);
  if (Status copied = cuda::copy_to_host(gpu->driver(), std::as_writable_bytes(std::span(result)),
                                         words->address(), stream->handle());
      !copied)
    return copied;
  if (Status done = stream->synchronize(); !done) return done;
  return wrong_words(result) == 0 ? Status() : fail(ErrorCode::Internal, "a word is wrong");
}

}  // namespace

int main(int argument_count, char** arguments) {
  const bool stays = argument_count > 1 && std::string_view(arguments[1]) == "--stay";
  const Status played = play();
  say(played ? "right" : to_string(played.error()).c_str());
  if (stays) (void)read_line();
  return played ? 0 : 1;
}
