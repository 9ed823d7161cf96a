// SPDX-License-Identifier: Apache-2.0
#include "idempotency/sequence.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>

#include "idempotency/check.h"
#include "kernels/ptx/parse.h"

namespace firebreak::idempotency {
namespace {

constexpr std::size_t random_kernels = 4;
constexpr std::uint64_t room_bytes = 16U << 10;

constexpr std::string_view start = R"(
  .reg .pred %p<9>; .reg .b32 %r<40>; .reg .b64 %rd<40>;
  ld.param.u64 %rd0, [a]; ld.param.u64 %rd1, [b]; ld.param.u64 %rd2, [c]; ld.param.u32 %r0, [n];
  mov.u32 %r3, %tid.x; mov.u32 %r4, %ctaid.x; mov.u32 %r5, %ntid.x;
  mad.lo.s32 %r6, %r4, %r5, %r3;
  setp.ge.s32 %p0, %r6, %r0;
  @%p0 bra DONE;
  mul.wide.s32 %rd3, %r6, 4;
  add.s64 %rd4, %rd0, %rd3;
  ld.global.u32 %r8, [%rd4];
)";
// b += a
constexpr std::string_view in_place = R"(
  add.s64 %rd5, %rd1, %rd3;
  ld.global.u32 %r9, [%rd5];
  add.s32 %r9, %r9, %r8;
  st.global.u32 [%rd5], %r9;
DONE:
  ret;
)";
// b[a & 15] counts, and the last of each 16 says so in c.
constexpr std::string_view counting = R"(
  and.b32 %r9, %r8, 15;
  mul.wide.s32 %rd5, %r9, 4;
  add.s64 %rd6, %rd1, %rd5;
  atom.global.add.u32 %r10, [%rd6], 1;
  setp.ne.s32 %p1, %r10, 3;
  @%p1 bra DONE;
  add.s64 %rd7, %rd2, %rd3;
  st.global.u32 [%rd7], %r10;
DONE:
  ret;
)";

// Where it writes in c depends on what is in b, and whether on what is in a.
constexpr std::string_view scattering = R"(
  and.b32 %r8, %r8, 1;
  setp.ne.s32 %p1, %r8, 0;
  @%p1 bra DONE;
  add.s64 %rd5, %rd1, %rd3;
  ld.global.u32 %r9, [%rd5];
  and.b32 %r9, %r9, 63;
  mul.wide.s32 %rd6, %r9, 4;
  add.s64 %rd7, %rd2, %rd6;
  st.global.u32 [%rd7], 7;
DONE:
  ret;
)";

std::string entry(std::size_t index, const std::string& body) {
  return fmt::format(
      ".visible .entry k{}(.param .u64 a, .param .u64 b, .param .u64 c, .param .u32 n, "
      ".param .u32 s, .param .u32 m)\n{{\n{}}}\n",
      index, body);
}

regions::Area random_area(const RandomBuffers& buffers, std::uint64_t size_bytes, std::mt19937_64& random) {
  regions::Area area;
  area.address = buffers.address[random() % 3] + room_bytes + 4 * (random() % 40);
  area.width_bytes = size_bytes;
  return area;
}

TracedRun run_copy(TracedGpu& gpu, const SequenceStep& step, std::uint64_t most_accesses) {
  TracedRun run;
  const std::uint64_t count = std::min(step.to.width_bytes, most_accesses);
  if (count < step.to.width_bytes) run.end = RunEnd::Torn;
  const std::span<std::byte> to = gpu.bytes(step.to.address, count);
  for (std::uint64_t i = 0; i < count; ++i) {
    if (step.kind == StepKind::Copy) {
      to[i] = gpu.bytes(step.from.address, step.from.width_bytes)[i];
      run.accesses.push_back({step.from.address + i, 1, softgpu::GpuAccess::Load, 0, i});
    } else {
      to[i] = step.value;
    }
    run.accesses.push_back({step.to.address + i, 1, softgpu::GpuAccess::Store, 0, i});
  }
  return run;
}

}  // namespace

Status SequenceBench::load(const std::string& text) {
  auto parsed = ptx::parse(text);
  if (!parsed) return propagate(parsed);
  module = *std::move(parsed);
  for (const ptx::Function& kernel : module.functions) summaries.push_back(access::summarise(module, kernel));
  buffers = allocate_buffers(gpu);
  return gpu.load(module);
}

std::uint64_t random_save_limit(std::mt19937_64& random) {
  constexpr std::array<std::uint64_t, 4> limits{0, 64, 400, 1'000'000};
  return limits[random() % limits.size()];
}

std::string make_sequence_kernels(std::mt19937_64& random) {
  std::string text;
  for (std::size_t i = 0; i < random_kernels; ++i) {
    std::string one = make_random_kernel(random);
    one.replace(one.find(" k("), 3, fmt::format(" k{}(", i));
    text += i == 0 ? one : one.substr(one.find(".visible"));
  }
  text += entry(random_kernels, std::string(start) + std::string(in_place));
  text += entry(random_kernels + 1, std::string(start) + std::string(counting));
  return text + entry(random_kernels + 2, std::string(start) + std::string(scattering));
}

std::vector<SequenceStep> make_sequence(const RandomBuffers& buffers, std::size_t kernel_count,
                                        std::mt19937_64& random) {
  std::vector<SequenceStep> steps(2 + random() % 6);
  for (SequenceStep& step : steps) {
    const std::uint64_t what = random() % 10;
    const std::uint64_t size_bytes = 1 + random() % 600;
    step.kind = what < 3 ? StepKind::Fill : what < 4 ? StepKind::Copy : StepKind::Launch;
    step.to = random_area(buffers, size_bytes, random);
    step.from = random_area(buffers, size_bytes, random);
    step.value = static_cast<std::byte>(random() & 0xFFU);
    step.kernel = random() % kernel_count;
    if (random() % 3 == 0) step.kernel = random_kernels + random() % (kernel_count - random_kernels);
    step.launch = make_random_launch(buffers, random);
    step.launch.kernel = fmt::format("k{}", step.kernel);
  }
  return steps;
}

Result<TracedRun> run_step(TracedGpu& gpu, const SequenceStep& step, std::uint64_t most_accesses,
                           std::uint64_t order) {
  if (step.kind == StepKind::Launch) return gpu.run(step.launch, most_accesses, order);
  return run_copy(gpu, step, most_accesses);
}

access::OperationEffects effects_of(const TracedGpu& gpu, const SequenceStep& step,
                                    const std::vector<access::KernelSummary>& summaries,
                                    access::DecisionWorkspace& workspace) {
  if (step.kind == StepKind::Fill) return regions::fill_effects(step.to, gpu.memory());
  if (step.kind == StepKind::Copy) return regions::copy_effects(step.to, step.from, gpu.memory());
  return access::find_effects(summaries.at(step.kernel), arguments_of(gpu, step.launch), workspace);
}

}  // namespace firebreak::idempotency
