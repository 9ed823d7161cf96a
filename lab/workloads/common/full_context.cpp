// SPDX-License-Identifier: Apache-2.0
#include "workloads/common/full_context.h"

#include <chrono>

namespace firebreak::workloads {
namespace {

Result<Gpu> make(std::string_view ptx, const Workload& workload) {
  auto gpu = Gpu::open(ptx);
  if (!gpu) return propagate(gpu);
  if (const Status warm = workload.warm_up(*gpu); !warm) return propagate(warm, "warm-up");
  return gpu;
}

}  // namespace

void FullContext::begin(std::string_view ptx, const Workload& workload) {
  coming_ = std::async(std::launch::async, [ptx, &workload] { return make(ptx, workload); });
}

std::optional<Result<Gpu>> FullContext::take() {
  if (!coming_.valid() || coming_.wait_for(std::chrono::seconds(0)) != std::future_status::ready) return {};
  return coming_.get();
}

}  // namespace firebreak::workloads
