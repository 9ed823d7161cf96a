// SPDX-License-Identifier: Apache-2.0
#include "softgpu/driver/gpu_control.h"

#include <algorithm>
#include <chrono>
#include <optional>
#include <utility>

namespace firebreak::softgpu::driver {

namespace {
/// Whether a fault has been told of.
constexpr std::int64_t until_asked_again_ns = 1'000'000;
/// Without being woken.
constexpr std::chrono::seconds look_again(1);
/// For what nobody is woken by.
constexpr std::chrono::milliseconds short_look_again(1);
/// After the last core dump.
constexpr std::chrono::milliseconds reset_takes(50);
}  // namespace

GpuControl::GpuControl(std::shared_ptr<SharedGpu> gpu, std::shared_ptr<Domain> domain, std::uint32_t slot)
    : gpu_(std::move(gpu)), domain_(std::move(domain)), slot_(slot) {}

bool GpuControl::stalled() const { return gpu_->stalled_until_ns() > now_ns(); }

bool GpuControl::stopped() const {
  return domain_->is_faulted(slot_) || domain_->is_terminated(slot_) || domain_->server_gone() ||
         gpu_->device_fault().has_value();
}

bool GpuControl::should_stop() {
  while (true) {
    const std::uint32_t seen = gpu_->wake().value();
    if (stopped()) return true;
    if (stands_still()) {
      gpu_->wake().wait(seen, look_again);
      continue;
    }
    const std::int64_t remaining_ns = gpu_->stalled_until_ns() - now_ns();
    if (remaining_ns <= 0) break;
    gpu_->wake().wait(seen, std::chrono::nanoseconds(remaining_ns));
  }
  attention.store(0);
  refresh();  // a stall that began before the store above must not be lost
  return false;
}

void GpuControl::wait_while_still() {
  while (true) {
    const std::uint32_t seen = gpu_->wake().value();
    if (stopped() || !stands_still()) return;
    gpu_->wake().wait(seen, look_again);
  }
}

void GpuControl::wait_until_halted(const DomainHold& hold) {
  const auto is_over = [&] {
    return halt_rules_.limit_ns && now_ns() >= hold.dumps_due_ns + *halt_rules_.limit_ns;
  };
  while (!stopped() && domain_->has_worker_beside(slot_) && !is_over()) {
    gpu_->wake().wait(gpu_->wake().value(), short_look_again);
  }
}

bool GpuControl::outlives_own_dump() {
  std::optional<std::chrono::steady_clock::time_point> complete_since;
  while (true) {
    const std::uint32_t seen = gpu_->wake().value();
    if (domain_->has_dumped(slot_) && domain_->falls_late(slot_)) return true;
    if (stopped()) return false;
    const auto hold = domain_->hold();
    if (hold && hold->faulter_slot == slot_ && !domain_->stands_still(slot_)) {
      const auto now = std::chrono::steady_clock::now();
      if (!complete_since) complete_since = now;
      if (now - *complete_since >= reset_takes) return true;
    }
    gpu_->wake().wait(seen, complete_since ? Nanoseconds(reset_takes) : Nanoseconds(look_again));
  }
}

void GpuControl::refresh() {
  if (stopped() || stalled() || stands_still()) attention.store(1);
}

std::optional<GpuControl::DueError> GpuControl::fault_error() const {
  if (domain_->is_newcomer(slot_) && !domain_->healthy()) return DueError{CUDA_ERROR_MPS_SERVER_NOT_READY, 0};
  if (const auto fault = domain_->fault_of(slot_)) {
    const bool faulter = fault->faulter_slot == slot_;
    const std::int64_t due_ns = faulter ? fault->faulter_error_due_ns : fault->co_client_error_due_ns;
    return DueError{fault->error,
                    domain_->is_told() ? due_ns : std::max(due_ns, now_ns() + until_asked_again_ns)};
  }
  if (const auto fault = gpu_->device_fault()) return DueError{fault->error, fault->error_due_ns};
  return std::nullopt;
}

CUresult GpuControl::sticky_error() const {
  const auto fault = fault_error();
  if (fault && now_ns() >= fault->due_ns) return fault->error;
  if (domain_->is_terminated(slot_)) return CUDA_ERROR_MPS_CLIENT_TERMINATED;
  if (!fault && domain_->server_gone()) return CUDA_ERROR_MPS_RPC_FAILURE;
  return CUDA_SUCCESS;
}

std::optional<std::int64_t> GpuControl::error_due_ns() const {
  const auto fault = fault_error();
  return fault ? std::optional(fault->due_ns) : std::nullopt;
}

}  // namespace firebreak::softgpu::driver
