// SPDX-License-Identifier: Apache-2.0
#include <array>
#include <atomic>
#include <thread>
#include <utility>

#include "cuda/module.h"
#include "cuda/pinned_buffer.h"
#include "cuda/stream.h"
#include "inject/kinds.h"
#include "inject/report.h"

namespace firebreak::inject {
namespace {

/// Says that it runs, then works for `limit_ns`; a bound on the turns ends it even where the timer stands
/// still.
constexpr std::string_view ptx = R"(.version 7.0
.target sm_70
.address_size 64

.visible .entry work_for_a_while(.param .u64 running, .param .u64 limit_ns)
{
  .reg .u64 %running, %limit, %begin, %now, %elapsed;
  .reg .u32 %turns;
  .reg .pred %again;
  ld.param.u64 %running, [running];
  ld.param.u64 %limit, [limit_ns];
  mov.u64 %begin, %globaltimer;
  mov.u32 %turns, 0;
  st.volatile.u32 [%running], 1;
turn:
  mov.u64 %now, %globaltimer;
  sub.u64 %elapsed, %now, %begin;
  add.u32 %turns, %turns, 1;
  setp.lt.u64 %again, %elapsed, %limit;
  setp.lt.and.u32 %again, %turns, 268435456, %again;
  @%again bra turn;
  ret;
}
)";

constexpr std::uint64_t kernel_limit_ns = 2'000'000'000;
constexpr std::int64_t start_limit_ns = 10'000'000'000;

class SigkillInjection final : public Injection {
 public:
  SigkillInjection(std::function<void()> kill_self, cuda::Module module, cuda::Function function,
                   cuda::PinnedBuffer running, cuda::Stream stream)
      : kill_self_(std::move(kill_self)),
        module_(std::move(module)),
        function_(function),
        running_(std::move(running)),
        stream_(std::move(stream)) {}

  Report raise() override {
    CUdeviceptr running = running_.device_address();
    std::uint64_t limit_ns = kernel_limit_ns;
    std::array<void*, 2> arguments{&running, &limit_ns};
    const CUresult queued = function_.launch_packed(stream_.handle(), cuda::LaunchShape{}, arguments);
    if (queued == CUDA_SUCCESS) wait_until_it_runs();
    const std::int64_t killed_at_ns = now_ns();
    if (queued == CUDA_SUCCESS) kill_self_();
    return wait_and_report(stream_, killed_at_ns, queued);
  }

 private:
  void wait_until_it_runs() const {
    auto* word = reinterpret_cast<std::uint32_t*>(running_.data());
    const std::int64_t until_ns = now_ns() + start_limit_ns;
    while (std::atomic_ref<std::uint32_t>(*word).load(std::memory_order_acquire) == 0 &&
           now_ns() < until_ns) {
      std::this_thread::yield();
    }
  }

  std::function<void()> kill_self_;
  cuda::Module module_;
  cuda::Function function_;
  cuda::PinnedBuffer running_;
  cuda::Stream stream_;
};

Result<std::unique_ptr<Injection>> prepare(const cuda::Driver& driver, const cuda::ContextView& context,
                                           const Options& options) {
  if (!options.kill_self)
    return fail(ErrorCode::InvalidArgument, "sigkill needs the caller's way to kill itself");
  const auto current = context.make_current();
  if (!current) return propagate(current);
  auto module = cuda::Module::load_ptx(driver, ptx);
  if (!module) return propagate(module, "sigkill");
  auto function = module->function("work_for_a_while");
  if (!function) return propagate(function);
  auto running = cuda::PinnedBuffer::allocate(driver, sizeof(std::uint32_t));
  if (!running) return propagate(running);
  auto stream = cuda::Stream::create(driver);
  if (!stream) return propagate(stream);
  return std::make_unique<SigkillInjection>(options.kill_self, std::move(*module), *function,
                                            std::move(*running), std::move(*stream));
}

}  // namespace

constinit const Kind sigkill{
    .name = "sigkill",
    .summary = "the process is killed while its kernel runs",
    .fault_class = fault::FaultClass::Termination,
    .expectation = {.faulter = CUDA_SUCCESS,
                    .co_client = CUDA_ERROR_ILLEGAL_ADDRESS,
                    .xids = mmu_xids,
                    .first_seen_by = fault::FaultSource::ProcessExit},
    .ptx = ptx,
    .prepare = &prepare,
};

}  // namespace firebreak::inject
