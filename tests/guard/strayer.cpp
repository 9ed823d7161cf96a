// SPDX-License-Identifier: Apache-2.0
/// A tenant that has laid guard ranges for itself and strays where its standard input says: "stray OFFSET"
/// stores once, "spin OFFSET" goes on for ever afterwards.
#include <array>
#include <cstdint>
#include <cstdio>
#include <iostream>
#include <string>

#include "gpu/either_gpu.h"
#include "ground/base/units.h"
#include "ground/platform/platform.h"
#include "program/cuda/first_gpu.h"
#include "program/cuda/module.h"
#include "program/cuda/stream.h"
#include "program/guard/guard_ranges.h"
#include "program/guard/ledger.h"

namespace {

using namespace firebreak;

constexpr const char* ptx = R"(.version 7.0
.target sm_70
.address_size 64

.visible .entry stray(.param .u64 word, .param .u32 spins)
{
  .reg .u64 %word;
  .reg .u32 %spins;
  .reg .pred %on;
  ld.param.u64 %word, [word];
  ld.param.u32 %spins, [spins];
  setp.ne.u32 %on, %spins, 0;
  st.volatile.u32 [%word], 1;
again:
  @%on bra again;
  ret;
}
)";

constexpr std::uint64_t base = 0x567000000000;
constexpr os::AddressRange guard_range{base, base + gib};

void say(const std::string& line) {
  std::puts(line.c_str());
  std::fflush(stdout);
}

Status take_commands(const cuda::Driver& driver, const cuda::Function& stray, const cuda::Stream& stream) {
  std::string verb;
  std::uint64_t offset = 0;
  while (std::cin >> verb >> offset) {
    std::uint64_t word = base + offset;
    std::uint32_t spins = verb == "spin" ? 1 : 0;
    std::array<void*, 2> arguments{&word, &spins};
    CUresult result = stray.launch_packed(stream.handle(), {}, arguments);
    if (result == CUDA_SUCCESS) say("launched");
    if (result == CUDA_SUCCESS) result = driver->cuStreamSynchronize(stream.handle());
    if (result != CUDA_SUCCESS) return fail(ErrorCode::Internal, driver.error_name(result));
    say("strayed");
  }
  return {};
}

Status be_a_strayer() {
  const auto platform = gpu::choose_either();
  if (!platform) return propagate(platform);
  const auto gpu = cuda::FirstGpu::open(platform->cuda_library);
  if (!gpu) return propagate(gpu);
  auto ledger = guard::Ledger::create();
  if (!ledger) return propagate(ledger);
  auto guard_ranges = guard::GuardRanges::of_this_process(*platform->kernel);
  if (!guard_ranges) return propagate(guard_ranges);
  if (Status laid = guard_ranges->lay(guard_range); !laid) return laid;
  ledger->covered(guard_range.begin, guard_range.end, gib);
  ledger->allocated(abi::GuardFunction::MemAlloc, base, mib);
  ledger->set_state(abi::GuardState::On, "");
  const auto module = cuda::Module::load_ptx(gpu->driver(), ptx);
  if (!module) return propagate(module);
  const auto stray = module->function("stray");
  if (!stray) return propagate(stray);
  const auto stream = cuda::Stream::create(gpu->driver());
  if (!stream) return propagate(stream);
  say("guarded");
  return take_commands(gpu->driver(), *stray, *stream);
}

}  // namespace

int main() {
  const Status done = be_a_strayer();
  if (!done) say(to_string(done.error()));
  return done ? 0 : 3;
}
