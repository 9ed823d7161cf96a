// SPDX-License-Identifier: Apache-2.0
#include "program/guard/probe.h"

#include <cstring>

#include "program/cuda/address_reservation.h"
#include "program/cuda/first_gpu.h"
#include "program/cuda/module.h"
#include "program/cuda/pinned_buffer.h"
#include "program/guard/arena.h"
#include "program/guard/guard_ranges.h"

namespace firebreak::guard {
namespace {

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

}  // namespace

ProbeResult probe_guard_ranges(os::Kernel& kernel, const std::string& cuda_library) {
  const auto result = stray_into_own_guard_ranges(kernel, cuda_library);
  return result ? *result : ProbeResult{ProbeResult::Answer::Untested, result.error().message};
}

}  // namespace firebreak::guard
