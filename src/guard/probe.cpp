// SPDX-License-Identifier: Apache-2.0
#include "guard/probe.h"

#include <cstring>

#include "base/units.h"
#include "cuda/address_reservation.h"
#include "cuda/first_gpu.h"
#include "cuda/module.h"
#include "cuda/pinned_buffer.h"
#include "guard/arena.h"
#include "guard/guard_ranges.h"
#include "os/file.h"
#include "os/program.h"

namespace firebreak::guard {
namespace {

// Exit statuses of the program; others (it crashed) mean that nothing was found out.
constexpr int works_status = 0;
constexpr int fails_status = 3;
constexpr int untested_status = 4;

constexpr std::uint32_t written = 0x00464742;

constexpr const char* ptx = R"(.version 7.0
.target sm_70
.address_size 64

.visible .entry stray(.param .u64 word, .param .u64 seen, .param .u32 value)
{
  .reg .u64 %word, %seen;
  .reg .u32 %value;
  ld.param.u64 %word, [word];
  ld.param.u64 %seen, [seen];
  ld.param.u32 %value, [value];
  st.volatile.u32 [%word], %value;
  ld.volatile.u32 %value, [%word];
  st.volatile.u32 [%seen], %value;
  ret;
}
)";

/// The result; or why there is none.
Result<ProbeResult> stray_into_own_guard_ranges(os::Kernel& kernel, const std::string& cuda_library) {
  const auto gpu = cuda::FirstGpu::open(cuda_library);
  if (!gpu) return propagate(gpu);
  const cuda::Driver& driver = gpu->driver();
  const auto module = cuda::Module::load_ptx(driver, ptx);
  if (!module) return propagate(module);
  const auto stray = module->function("stray");
  if (!stray) return propagate(stray);
  const auto seen = cuda::PinnedBuffer::allocate(driver, sizeof(written));
  if (!seen) return propagate(seen);
  const auto addresses =
      cuda::AddressReservation::reserve(driver, Arena::granule_bytes, Arena::granule_bytes);
  if (!addresses) return propagate(addresses);
  auto guard_ranges = GuardRanges::of_this_process(kernel);
  if (!guard_ranges) return propagate(guard_ranges);
  const os::AddressRange range{addresses->address(), addresses->address() + addresses->size_bytes()};
  if (const Status laid = guard_ranges->lay_over_reserved(range); !laid) return propagate(laid);
  if (const Status queued = stray->launch(nullptr, {}, addresses->address(), seen->device_address(), written);
      !queued)
    return propagate(queued);
  const CUresult result = driver->cuCtxSynchronize();
  if (result != CUDA_SUCCESS)
    return ProbeResult{ProbeResult::Answer::Fails,
                       "the GPU may not use what the CPU may not: " + driver.error_name(result)};
  std::uint32_t value = 0;
  std::memcpy(&value, seen->data(), sizeof(value));
  if (value != written) return ProbeResult{ProbeResult::Answer::Fails, "the GPU's store was lost"};
  return ProbeResult{ProbeResult::Answer::Works, ""};
}

/// A driver may have had its say before.
std::string last_line(std::string text) {
  while (text.ends_with('\n')) text.pop_back();
  return text.substr(text.rfind('\n') + 1);
}

}  // namespace

ProbeResult probe_guard_ranges(os::Kernel& kernel, const std::string& cuda_library) {
  const auto result = stray_into_own_guard_ranges(kernel, cuda_library);
  return result ? *result : ProbeResult{ProbeResult::Answer::Untested, result.error().message};
}

int exit_status_of(const ProbeResult& result) {
  switch (result.answer) {
    case ProbeResult::Answer::Works:
      return works_status;
    case ProbeResult::Answer::Fails:
      return fails_status;
    case ProbeResult::Answer::Untested:
      break;
  }
  return untested_status;
}

ProbeResult known_or_new_probe_result(os::Kernel& kernel, Probed what, Result<os::SpawnRequest> program,
                                      Milliseconds patience) {
  const ProbeResult known = known_probe_result(kernel, what);
  if (known.answer != ProbeResult::Answer::Untested) return known;
  if (!program) return {ProbeResult::Answer::Untested, program.error().message};
  // Without the variable a client looks for a daemon in the default place: this one finds an empty folder.
  const auto nobody = os::TemporaryDirectory::create();
  if (!nobody) return {ProbeResult::Answer::Untested, nobody.error().message};
  program->environment.emplace_back("CUDA_MPS_PIPE_DIRECTORY", nobody->path());
  program->environment.emplace_back("LD_PRELOAD", "");
  program->environment.emplace_back("CUDA_ENABLE_COREDUMP_ON_EXCEPTION", "0");
  const auto ran = os::run_program(kernel, std::move(*program), "", patience);
  if (!ran) return {ProbeResult::Answer::Untested, ran.error().message};
  const std::string said = last_line(ran->output);
  const bool ended = ran->status.signal == 0;
  ProbeResult result{ProbeResult::Answer::Untested, said.empty() ? "its probe ended without a word" : said};
  if (ended && ran->status.exit_code == works_status) result = {ProbeResult::Answer::Works, ""};
  if (ended && ran->status.exit_code == fails_status) result.answer = ProbeResult::Answer::Fails;
  (void)keep_probe_result(kernel, what, result);  // where it cannot be kept it is tried again
  return result;
}

}  // namespace firebreak::guard
