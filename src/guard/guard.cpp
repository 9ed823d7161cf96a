// SPDX-License-Identifier: Apache-2.0
#include "guard/guard.h"

#include <utility>

namespace firebreak::guard {

Result<std::unique_ptr<Guard>> Guard::create(const cuda::Driver& driver, os::Kernel& kernel,
                                             TerritorySettings settings) {
  auto ledger = Ledger::create();
  if (!ledger) return propagate(ledger);
  return std::unique_ptr<Guard>(new Guard(driver, kernel, std::move(*ledger), settings));
}

Status Guard::lay_blanket(Blanket blanket) {
  territory_ = std::make_unique<Territory>(driver_, std::move(blanket), ledger_, settings_);
  return territory_->start();
}

void Guard::start() {
  if (started_.load(std::memory_order_acquire)) return;
  const std::lock_guard lock(start_mutex_);
  if (started_.load(std::memory_order_relaxed)) return;
  auto blanket = Blanket::of_this_process(kernel_);
  started_.store(true, std::memory_order_release);
  const Status laid = blanket ? lay_blanket(std::move(*blanket)) : propagate(blanket);
  if (!laid) {
    ledger_.set_state(abi::GuardState::Off, to_string(laid.error()));
    return;
  }
  ledger_.set_state(abi::GuardState::On, territory_->remark());
  allocates_.store(true, std::memory_order_release);
  on_.store(true, std::memory_order_release);
}

void Guard::start_within_context() {
  if (started_.load(std::memory_order_acquire)) return;
  CUcontext context = nullptr;
  if (driver_->cuCtxGetCurrent(&context) == CUDA_SUCCESS && context != nullptr) start();
}

void Guard::pass_through(const std::string& reason) {
  if (allocates_.exchange(false)) ledger_.set_state(abi::GuardState::On, reason);
}

}  // namespace firebreak::guard
