// SPDX-License-Identifier: Apache-2.0
#include "guard/trial.h"

#include <cstring>

#include "base/units.h"
#include "cuda/address_reservation.h"
#include "cuda/first_gpu.h"
#include "cuda/module.h"
#include "cuda/pinned_buffer.h"
#include "guard/arena.h"
#include "guard/blanket.h"
#include "os/program.h"
#include "os/temporary_directory.h"

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

/// The verdict; or why there is none.
Result<Verdict> stray_into_own_blanket(os::Kernel& kernel, const std::string& cuda_library) {
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
  auto blanket = Blanket::of_this_process(kernel);
  if (!blanket) return propagate(blanket);
  const os::AddressRange range{addresses->address(), addresses->address() + addresses->size_bytes()};
  if (const Status laid = blanket->lay_over_reserved(range); !laid) return propagate(laid);
  if (const Status queued = stray->launch(nullptr, {}, addresses->address(), seen->device_address(), written);
      !queued)
    return propagate(queued);
  const CUresult result = driver->cuCtxSynchronize();
  if (result != CUDA_SUCCESS)
    return Verdict{Verdict::Word::Fails,
                   "the GPU may not use what the CPU may not: " + driver.error_name(result)};
  std::uint32_t value = 0;
  std::memcpy(&value, seen->data(), sizeof(value));
  if (value != written) return Verdict{Verdict::Word::Fails, "the GPU's store was lost"};
  return Verdict{Verdict::Word::Works, ""};
}

/// A driver may have had its say before.
std::string last_line(std::string text) {
  while (text.ends_with('\n')) text.pop_back();
  return text.substr(text.rfind('\n') + 1);
}

}  // namespace

Verdict try_blanket(os::Kernel& kernel, const std::string& cuda_library) {
  const auto verdict = stray_into_own_blanket(kernel, cuda_library);
  return verdict ? *verdict : Verdict{Verdict::Word::Untested, verdict.error().message};
}

int exit_status_of(const Verdict& verdict) {
  switch (verdict.word) {
    case Verdict::Word::Works:
      return works_status;
    case Verdict::Word::Fails:
      return fails_status;
    case Verdict::Word::Untested:
      break;
  }
  return untested_status;
}

Verdict known_or_tried_verdict(os::Kernel& kernel, Result<os::SpawnRequest> program, Milliseconds patience) {
  const Verdict known = known_verdict(kernel);
  if (known.word != Verdict::Word::Untested) return known;
  if (!program) return {Verdict::Word::Untested, program.error().message};
  // Without the variable a client looks for a daemon in the default place: this one finds an empty folder.
  const auto nobody = os::TemporaryDirectory::create();
  if (!nobody) return {Verdict::Word::Untested, nobody.error().message};
  program->environment.emplace_back("CUDA_MPS_PIPE_DIRECTORY", nobody->path());
  program->environment.emplace_back("LD_PRELOAD", "");
  program->environment.emplace_back("CUDA_ENABLE_COREDUMP_ON_EXCEPTION", "0");
  const auto ran = os::run_program(kernel, std::move(*program), "", patience);
  if (!ran) return {Verdict::Word::Untested, ran.error().message};
  const std::string said = last_line(ran->output);
  const bool ended = ran->status.signal == 0;
  Verdict verdict{Verdict::Word::Untested, said.empty() ? "its trial ended without a word" : said};
  if (ended && ran->status.exit_code == works_status) verdict = {Verdict::Word::Works, ""};
  if (ended && ran->status.exit_code == fails_status) verdict.word = Verdict::Word::Fails;
  (void)keep_verdict(kernel, verdict);  // where it cannot be kept it is tried again
  return verdict;
}

}  // namespace firebreak::guard
