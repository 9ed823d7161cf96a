// SPDX-License-Identifier: Apache-2.0
#include "inject/engine/waiting_fault.h"

#include <utility>

#include "ground/base/units.h"
#include "inject/engine/held_stream.h"
#include "inject/mapped_target.h"
#include "inject/report.h"
#include "program/cuda/pinned_buffer.h"

namespace firebreak::inject {
namespace {

// Enough for a copy to be the copy engine's work, and no more than the smallest granule of GPU memory.
constexpr std::size_t staging_bytes = mib;

class WaitingInjection final : public Injection {
 public:
  WaitingInjection(HeldStream held, std::shared_ptr<MappedTarget> target, cuda::PinnedBuffer staging,
                   QueueWork queue_work)
      : held_(std::move(held)),
        target_(std::move(target)),
        staging_(std::move(staging)),
        queue_work_(queue_work) {}

  RaisedFault raise() override {
    const cuda::Stream& stream = held_.stream();
    CUresult queued = held_.hold();
    if (queued == CUDA_SUCCESS) {
      queued = queue_work_(stream.driver(), stream.handle(), target_->address(), staging_.bytes());
    }
    target_->mapping.reset();
    const std::int64_t launched_at_ns = now_ns();
    held_.release();
    return wait_and_report(stream, launched_at_ns, queued);
  }

 private:
  HeldStream held_;
  std::shared_ptr<MappedTarget> target_;
  cuda::PinnedBuffer staging_;
  QueueWork queue_work_;
};

}  // namespace

Prepared prepare_waiting(const cuda::ContextView& context, QueueWork queue_work) {
  const auto current = context.make_current();
  if (!current) return propagate(current);
  const cuda::Driver& driver = context.driver();
  auto target = map_target(context, cuda::Access::ReadWrite);
  if (!target) return propagate(target);
  auto held = HeldStream::create(driver);
  if (!held) return propagate(held);
  auto staging = cuda::PinnedBuffer::allocate(driver, staging_bytes);
  if (!staging) return propagate(staging);
  return std::make_unique<WaitingInjection>(std::move(*held), std::move(*target), std::move(*staging),
                                            queue_work);
}

}  // namespace firebreak::inject
