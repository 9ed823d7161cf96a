// SPDX-License-Identifier: Apache-2.0
#include "softgpu/driver/gpu_control.h"

#include <algorithm>
#include <chrono>
#include <optional>
#include <utility>

namespace firebreak::softgpu::driver {

namespace {
/// Says whether a fault has been told of.
constexpr std::int64_t until_asked_again_ns = 1'000'000;
/// Pause between two looks without being woken.
constexpr std::chrono::seconds look_again(1);
/// Pause between two looks at what nobody is woken by.
constexpr std::chrono::milliseconds short_look_again(1);
/// Time of the reset after the last core dump.
constexpr std::chrono::milliseconds reset_takes(50);
}  // namespace

GpuControl::GpuControl(std::shared_ptr<SharedGpu> gpu, std::shared_ptr<Domain> domain, std::uint32_t slot)
    : gpu_(std::move(gpu)) {
  move_to(std::move(domain), slot);
}

void GpuControl::move_to(std::shared_ptr<Domain> domain, std::uint32_t slot) {
  places_.emplace_back(std::move(domain), slot);
  place_.store(&places_.back(), std::memory_order_release);
}

bool GpuControl::stalled() const { return gpu_->stalled_until_ns() > now_ns(); }

bool GpuControl::stopped() const {
  return domain().is_faulted(slot()) || domain().is_terminated(slot()) || domain().server_gone() ||
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
  if (hold.faulter_slot == slot()) return;  // the exception itself has halted it
  const auto is_over = [&] {
    return halt_rules_.limit_ns && now_ns() >= hold.dumps_due_ns + *halt_rules_.limit_ns;
  };
  while (!stopped() && domain().has_worker_beside(slot()) && !is_over()) {
    gpu_->wake().wait(gpu_->wake().value(), short_look_again);
  }
}

bool GpuControl::outlives_own_dump() {
  std::optional<std::chrono::steady_clock::time_point> complete_since;
  while (true) {
    const std::uint32_t seen = gpu_->wake().value();
    const auto hold = domain().hold();
    // A second process that has faulted since stands still until the reset: 4 of 4 (H200,
    // results/h200/parking-at-once.json).
    const bool is_first = hold && hold->faulter_slot == slot();
    if (is_first && domain().has_dumped(slot()) && domain().falls_late(slot())) return true;
    if (stopped()) return false;
    if (is_first && !domain().stands_still(slot())) {
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
  const bool is_member = !place()->is_left.load(std::memory_order_acquire);
  if (is_member && domain().is_newcomer(slot()) && !domain().healthy())
    return DueError{CUDA_ERROR_MPS_SERVER_NOT_READY, 0};
  if (const auto fault = is_member ? domain().fault_of(slot()) : std::nullopt) {
    const bool faulter = fault->faulter_slot == slot();
    const std::int64_t due_ns = faulter ? fault->faulter_error_due_ns : fault->co_client_error_due_ns;
    return DueError{fault->error,
                    domain().is_told() ? due_ns : std::max(due_ns, now_ns() + until_asked_again_ns)};
  }
  if (const auto fault = gpu_->device_fault()) return DueError{fault->error, fault->error_due_ns};
  return std::nullopt;
}

CUresult GpuControl::sticky_error() const {
  const auto fault = fault_error();
  if (fault && now_ns() >= fault->due_ns) return fault->error;
  if (place()->is_left.load(std::memory_order_acquire)) return CUDA_SUCCESS;
  if (domain().is_terminated(slot())) return CUDA_ERROR_MPS_CLIENT_TERMINATED;
  if (!fault && domain().server_gone()) return CUDA_ERROR_MPS_RPC_FAILURE;
  return CUDA_SUCCESS;
}

std::optional<std::int64_t> GpuControl::error_due_ns() const {
  const auto fault = fault_error();
  return fault ? std::optional(fault->due_ns) : std::nullopt;
}

}  // namespace firebreak::softgpu::driver
