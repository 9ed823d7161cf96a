// SPDX-License-Identifier: Apache-2.0
/// How fast the software GPU's execution units are: items are PTX instructions, summed over threads.
#include <benchmark/benchmark.h>

#include <cstring>
#include <memory>
#include <string>
#include <vector>

#include "kernels/ptx/parse.h"
#include "softgpu/interpreter/interpreter.h"

namespace firebreak::softgpu {
namespace {

class NeverStop final : public ExecutionControl {
 public:
  bool should_stop() override { return false; }
};

/// A GPU with a few buffers, for one kernel.
class Machine {
 public:
  Machine(const char* ptx, const char* kernel) {
    auto parsed = ptx::parse(ptx);
    if (!parsed) return;
    auto loaded = LoadedModule::load(
        *std::move(parsed),
        [this](std::uint64_t size, std::uint64_t) -> Result<std::uint64_t> { return allocate(size); },
        [](std::uint64_t, std::span<const std::byte>) -> Status { return {}; });
    if (!loaded) return;
    launch.module = *std::move(loaded);
    launch.kernel = launch.module->find_kernel(kernel);
  }

  std::uint64_t allocate(std::uint64_t size_bytes) {
    auto owner = std::make_shared<std::vector<std::uint64_t>>(size_bytes / 8 + 2);
    Translation range{next_, next_ + size_bytes, reinterpret_cast<std::byte*>(owner->data()),
                      PageAccess::ReadWrite, owner};
    memory_.map(std::move(range));
    return std::exchange(next_, next_ + (size_bytes + 0x1F'FFFF) / 0x10'0000 * 0x10'0000);
  }

  template <class... Arguments>
  void set_parameters(Arguments... arguments) {
    std::size_t index = 0;
    (put(index++, &arguments, sizeof(arguments)), ...);
  }

  /// Runs the launch until the benchmark has enough.
  void measure(benchmark::State& state) {
    if (launch.kernel == nullptr) {
      state.SkipWithError("the kernel did not load");
      return;
    }
    std::int64_t instructions = 0;
    for ([[maybe_unused]] auto _ : state) {
      const LaunchOutcome outcome = run_launch(launch, memory_, control_);
      const auto* completed = std::get_if<Completed>(&outcome);
      if (completed == nullptr) {
        state.SkipWithError("the kernel did not complete");
        return;
      }
      instructions += static_cast<std::int64_t>(completed->instructions);
    }
    state.SetItemsProcessed(instructions);
  }

  Launch launch;

 private:
  void put(std::size_t index, const void* value, std::size_t size_bytes) {
    if (launch.kernel == nullptr) return;
    const std::size_t offset = launch.kernel->parameters()[index].offset_bytes;
    launch.parameters.resize(std::max(launch.parameters.size(), offset + size_bytes));
    std::memcpy(launch.parameters.data() + offset, value, size_bytes);
  }

  AddressSpace memory_;
  NeverStop control_;
  std::uint64_t next_ = 0x7000'0000'0000;
};

constexpr const char* dependent_loop = R"(
.version 8.0
.target sm_80
.address_size 64
.visible .entry dependent_loop(.param .u32 count)
{
  .reg .b32 %r<4>;
  .reg .pred %p;
  ld.param.u32 %r0, [count];
  mov.u32 %r1, %tid.x;
again:
  mad.lo.s32 %r1, %r1, 1664525, %r0;
  xor.b32 %r1, %r1, %r0;
  add.s32 %r1, %r1, 1013904223;
  shr.u32 %r2, %r1, 3;
  add.s32 %r1, %r1, %r2;
  add.s32 %r0, %r0, -1;
  setp.ne.s32 %p, %r0, 0;
  @%p bra again;
  ret;
}
)";

constexpr const char* fused_loop = R"(
.version 8.0
.target sm_80
.address_size 64
.visible .entry fused_loop(.param .u32 count)
{
  .reg .b32 %r<4>;
  .reg .f32 %f<4>;
  .reg .pred %p;
  ld.param.u32 %r0, [count];
  mov.f32 %f1, 0f3F800000;
again:
  fma.rn.f32 %f1, %f1, 0f3F7FFFF0, 0f33800000;
  fma.rn.f32 %f1, %f1, 0f3F7FFFF0, 0f33800000;
  fma.rn.f32 %f1, %f1, 0f3F7FFFF0, 0f33800000;
  fma.rn.f32 %f1, %f1, 0f3F7FFFF0, 0f33800000;
  add.s32 %r0, %r0, -1;
  setp.ne.s32 %p, %r0, 0;
  @%p bra again;
  ret;
}
)";

constexpr const char* matmul = R"(
.version 8.0
.target sm_80
.address_size 64
.visible .entry matmul(.param .u64 a, .param .u64 b, .param .u64 c, .param .u32 size)
{
  .shared .align 4 .b8 tile_a[4096];
  .shared .align 4 .b8 tile_b[4096];
  .reg .b32 %r<24>;
  .reg .b64 %rd<12>;
  .reg .f32 %f<8>;
  .reg .pred %p<3>;
  ld.param.u64 %rd0, [a];
  ld.param.u64 %rd1, [b];
  ld.param.u64 %rd2, [c];
  ld.param.u32 %r0, [size];
  mov.u32 %r1, %tid.x;
  mov.u32 %r2, %tid.y;
  mov.u32 %r3, %ctaid.x;
  mov.u32 %r4, %ctaid.y;
  mad.lo.s32 %r5, %r3, 32, %r1;
  mad.lo.s32 %r6, %r4, 32, %r2;
  mov.f32 %f0, 0f00000000;
  mov.u32 %r7, 0;
  mad.lo.s32 %r8, %r2, 32, %r1;
  shl.b32 %r8, %r8, 2;
  mov.u32 %r9, tile_a;
  mov.u32 %r10, tile_b;
  add.s32 %r11, %r9, %r8;
  add.s32 %r12, %r10, %r8;
next_tile:
  add.s32 %r13, %r7, %r1;
  mad.lo.s32 %r13, %r6, %r0, %r13;
  mul.wide.s32 %rd3, %r13, 4;
  add.s64 %rd3, %rd0, %rd3;
  ld.global.f32 %f1, [%rd3];
  st.shared.f32 [%r11], %f1;
  add.s32 %r14, %r7, %r2;
  mad.lo.s32 %r14, %r14, %r0, %r5;
  mul.wide.s32 %rd4, %r14, 4;
  add.s64 %rd4, %rd1, %rd4;
  ld.global.f32 %f2, [%rd4];
  st.shared.f32 [%r12], %f2;
  bar.sync 0;
  mov.u32 %r15, 0;
  shl.b32 %r16, %r2, 7;
  add.s32 %r16, %r16, %r9;
  shl.b32 %r17, %r1, 2;
  add.s32 %r17, %r17, %r10;
inner:
  ld.shared.f32 %f3, [%r16];
  ld.shared.f32 %f4, [%r17];
  fma.rn.f32 %f0, %f3, %f4, %f0;
  ld.shared.f32 %f3, [%r16+4];
  ld.shared.f32 %f4, [%r17+128];
  fma.rn.f32 %f0, %f3, %f4, %f0;
  add.s32 %r16, %r16, 8;
  add.s32 %r17, %r17, 256;
  add.s32 %r15, %r15, 2;
  setp.lt.s32 %p0, %r15, 32;
  @%p0 bra inner;
  bar.sync 0;
  add.s32 %r7, %r7, 32;
  setp.lt.s32 %p1, %r7, %r0;
  @%p1 bra next_tile;
  mad.lo.s32 %r18, %r6, %r0, %r5;
  mul.wide.s32 %rd5, %r18, 4;
  add.s64 %rd5, %rd2, %rd5;
  st.global.f32 [%rd5], %f0;
  ret;
}
)";

constexpr const char* copy = R"(
.version 8.0
.target sm_80
.address_size 64
.visible .entry copy(.param .u64 from, .param .u64 to, .param .u32 count)
{
  .reg .b32 %r<8>;
  .reg .b64 %rd<6>;
  .reg .f32 %f<4>;
  .reg .pred %p;
  ld.param.u64 %rd0, [from];
  ld.param.u64 %rd1, [to];
  ld.param.u32 %r0, [count];
  mov.u32 %r1, %tid.x;
  mov.u32 %r2, %ntid.x;
again:
  mul.wide.u32 %rd2, %r1, 16;
  add.s64 %rd3, %rd0, %rd2;
  add.s64 %rd4, %rd1, %rd2;
  ld.global.v4.f32 {%f0, %f1, %f2, %f3}, [%rd3];
  st.global.v4.f32 [%rd4], {%f0, %f1, %f2, %f3};
  add.s32 %r1, %r1, %r2;
  setp.lt.u32 %p, %r1, %r0;
  @%p bra again;
  ret;
}
)";

void run_dependent_loop(benchmark::State& state) {
  Machine machine(dependent_loop, "dependent_loop");
  machine.launch.block.x = static_cast<std::uint32_t>(state.range(0));
  machine.set_parameters(std::uint32_t{1'000'000});
  machine.measure(state);
}
BENCHMARK(run_dependent_loop)->ArgName("threads")->Arg(1)->Arg(32)->Unit(benchmark::kMillisecond);

void run_fused_loop(benchmark::State& state) {
  Machine machine(fused_loop, "fused_loop");
  machine.launch.block.x = static_cast<std::uint32_t>(state.range(0));
  machine.set_parameters(std::uint32_t{1'000'000});
  machine.measure(state);
}
BENCHMARK(run_fused_loop)->ArgName("threads")->Arg(1)->Arg(32)->Unit(benchmark::kMillisecond);

void run_matmul(benchmark::State& state) {
  constexpr std::uint32_t size = 128;
  Machine machine(matmul, "matmul");
  machine.launch.grid = {size / 32, size / 32, 1};
  machine.launch.block = {32, 32, 1};
  const std::uint64_t a = machine.allocate(size * size * 4);
  const std::uint64_t b = machine.allocate(size * size * 4);
  const std::uint64_t c = machine.allocate(size * size * 4);
  machine.set_parameters(a, b, c, size);
  machine.measure(state);
  const auto flops = 2.0 * size * size * size * static_cast<double>(state.iterations());
  state.counters["flops"] = benchmark::Counter(flops, benchmark::Counter::kIsRate);
}
BENCHMARK(run_matmul)->Unit(benchmark::kMillisecond);

void run_copy(benchmark::State& state) {
  constexpr std::uint32_t count = 65'536;
  Machine machine(copy, "copy");
  machine.launch.block.x = 256;
  const std::uint64_t from = machine.allocate(count * 16);
  const std::uint64_t to = machine.allocate(count * 16);
  machine.set_parameters(from, to, count);
  machine.measure(state);
  state.SetBytesProcessed(state.iterations() * count * 16);
}
BENCHMARK(run_copy)->Unit(benchmark::kMillisecond);

}  // namespace
}  // namespace firebreak::softgpu

BENCHMARK_MAIN();
