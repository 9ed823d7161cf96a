// SPDX-License-Identifier: Apache-2.0
/// A program for guard_overhead_benchmark: does one kind of work on the GPU and prints how long it took, in
/// milliseconds. guard_load start|multiply|copy|launch|call [SCALE]
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <functional>
#include <string>

#include "gpu/either_gpu.h"
#include "ground/platform/platform.h"
#include "program/cuda/device_buffer.h"
#include "program/cuda/first_gpu.h"
#include "program/cuda/module.h"
#include "program/cuda/stream.h"

namespace {

using namespace firebreak;

constexpr const char* ptx = R"(.version 7.0
.target sm_70
.address_size 64

.visible .entry multiply(.param .u64 out, .param .u32 rounds)
{
  .reg .u64 %out;
  .reg .u32 %n;
  .reg .f32 %a, %b, %c, %d;
  .reg .pred %on;
  ld.param.u64 %out, [out];
  ld.param.u32 %n, [rounds];
  mov.f32 %a, 0f3F800001;
  mov.f32 %b, 0f3F7FFFFE;
  mov.f32 %c, 0f3F800002;
  mov.f32 %d, 0f3F7FFFFD;
again:
  fma.rn.f32 %a, %a, %b, %c;
  fma.rn.f32 %b, %b, %c, %d;
  fma.rn.f32 %c, %c, %d, %a;
  fma.rn.f32 %d, %d, %a, %b;
  sub.u32 %n, %n, 1;
  setp.ne.u32 %on, %n, 0;
  @%on bra again;
  st.f32 [%out], %d;
  ret;
}

.visible .entry nothing(.param .u64 out, .param .u32 rounds)
{
  ret;
}
)";

/// Number of refused calls in one measurement.
constexpr int calls = 1'000'000;

using Time = std::chrono::steady_clock::time_point;
double ms_since(Time begin) {
  return std::chrono::duration<double, std::milli>(std::chrono::steady_clock::now() - begin).count();
}

/// Work that is measured, and how often within one measurement.
struct Load {
  std::function<Status()> once;
  int times = 1;
};

Result<double> measure(const cuda::ContextView& context, const Load& load) {
  double best_ms = 0;
  for (int round = 0; round < 6; ++round) {
    const Time begin = std::chrono::steady_clock::now();
    for (int i = 0; i < load.times; ++i) {
      if (const Status done = load.once(); !done) return propagate(done);
    }
    if (const Status idle = context.synchronize(); !idle) return propagate(idle);
    const double ms = ms_since(begin);
    if (round == 1 || (round > 1 && ms < best_ms)) best_ms = ms;  // the first warms up
  }
  return best_ms;
}

Result<double> run(const std::string& what, unsigned int scale) {
  const Time begin = std::chrono::steady_clock::now();
  const auto platform = gpu::choose_either();
  if (!platform) return propagate(platform);
  const auto gpu = cuda::FirstGpu::open(platform->cuda_library);
  if (!gpu) return propagate(gpu);
  const cuda::Driver& driver = gpu->driver();
  const auto module = cuda::Module::load_ptx(driver, ptx);
  if (!module) return propagate(module);
  const auto multiply = module->function("multiply");
  const auto nothing = module->function("nothing");
  const std::size_t bytes = std::size_t{scale} << 20;
  const auto a = cuda::DeviceBuffer::allocate(driver, bytes);
  const auto b = cuda::DeviceBuffer::allocate(driver, bytes);
  if (!multiply || !nothing || !a || !b) return fail(ErrorCode::Device, "the load cannot be set up");
  if (what == "start") return ms_since(begin);
  if (what == "multiply") {
    const cuda::LaunchShape shape{{scale}, {256}};
    return measure(gpu->context(),
                   {[&] { return multiply->launch(nullptr, shape, a->address(), scale * 64); }, 4});
  }
  if (what == "copy") {
    return measure(gpu->context(),
                   {[&] {
                      return driver.check(
                          driver->cuMemcpyDtoDAsync(b->address(), a->address(), bytes, nullptr), "copy");
                    },
                    20});
  }
  if (what == "call") {
    // A launch that the driver refuses at once: what is left is the way to it.
    const cuda::LaunchShape refused{{0}, {1}};
    const auto stream = cuda::Stream::create(driver);
    if (!stream) return propagate(stream);
    return measure(gpu->context(), {[&]() -> Status {
                                      (void)nothing->launch_packed(stream->handle(), refused, {});
                                      return {};
                                    },
                                    calls});
  }
  return measure(gpu->context(), {[&] { return nothing->launch(nullptr, {}, a->address(), 1U); },
                                  static_cast<int>(scale) * 20});
}

}  // namespace

int main(int count, char** arguments) {
  const std::string what = count > 1 ? arguments[1] : "start";
  const auto scale = static_cast<unsigned int>(count > 2 ? std::atoi(arguments[2]) : 16);
  const auto ms = run(what, scale);
  if (!ms) {
    std::fprintf(stderr, "%s\n", to_string(ms.error()).c_str());
    return 1;
  }
  std::printf("%.6f\n", *ms);
  return 0;
}
