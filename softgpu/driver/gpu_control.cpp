// SPDX-License-Identifier: Apache-2.0
#include "softgpu/driver/gpu_control.h"

#include <chrono>
#include <utility>

namespace firebreak::softgpu::driver {

GpuControl::GpuControl(std::shared_ptr<SharedGpu> gpu, std::shared_ptr<Domain> domain, std::uint32_t slot)
    : gpu_(std::move(gpu)), domain_(std::move(domain)), slot_(slot) {}

bool GpuControl::stalled() const { return gpu_->stalled_until_ns() > now_ns(); }

bool GpuControl::stopped() const {
  return domain_->is_faulted(slot_) || domain_->is_terminated(slot_) || domain_->server_gone();
}

bool GpuControl::should_stop() {
  while (true) {
    const std::uint32_t seen = gpu_->wake().value();
    if (stopped()) return true;
    const std::int64_t remaining_ns = gpu_->stalled_until_ns() - now_ns();
    if (remaining_ns <= 0) break;
    gpu_->wake().wait(seen, std::chrono::nanoseconds(remaining_ns));
  }
  attention.store(0);
  refresh();  // a stall that began before the store above must not be lost
  return false;
}

void GpuControl::refresh() {
  if (stopped() || stalled()) attention.store(1);
}

CUresult GpuControl::sticky_error() const {
  const auto fault = domain_->fault_of(slot_);
  if (fault) {
    const bool faulter = fault->faulter_slot == slot_;
    const std::int64_t due_ns = faulter ? fault->faulter_error_due_ns : fault->co_client_error_due_ns;
    if (now_ns() >= due_ns) return fault->error;
  }
  if (domain_->is_terminated(slot_)) return CUDA_ERROR_MPS_CLIENT_TERMINATED;
  if (!fault && domain_->server_gone()) return CUDA_ERROR_MPS_RPC_FAILURE;
  return CUDA_SUCCESS;
}

std::optional<std::int64_t> GpuControl::error_due_ns() const {
  const auto fault = domain_->fault_of(slot_);
  if (!fault) return std::nullopt;
  return fault->faulter_slot == slot_ ? fault->faulter_error_due_ns : fault->co_client_error_due_ns;
}

}  // namespace firebreak::softgpu::driver
