// SPDX-License-Identifier: Apache-2.0
#include "program/guard/guard.h"

#include <initializer_list>
#include <utility>

#include "program/guard/say.h"

namespace firebreak::guard {
namespace {

std::string joined(std::initializer_list<std::string> remarks) {
  std::string all;
  for (const std::string& remark : remarks) all += (all.empty() || remark.empty() ? "" : "; ") + remark;
  return all;
}

}  // namespace

Result<std::unique_ptr<Guard>> Guard::create(const cuda::Driver& driver, os::Kernel& kernel,
                                             GuardedAddressSpaceSettings settings, Milliseconds patience) {
  auto ledger = Ledger::create();
  if (!ledger) return propagate(ledger);
  return std::unique_ptr<Guard>(new Guard(driver, kernel, std::move(*ledger), settings, patience));
}

Status Guard::lay_guard_ranges(GuardRanges guard_ranges) {
  address_space_ =
      std::make_unique<GuardedAddressSpace>(driver_, std::move(guard_ranges), ledger_, settings_);
  return address_space_->start();
}

Status Guard::come_up(const ProbeResult& result) {
  if (result.answer == ProbeResult::Answer::Fails)
    return fail(ErrorCode::Unsupported, "it does not work on this kernel and driver: " + result.reason);
  auto guard_ranges = GuardRanges::of_this_process(kernel_, settings_.find_descriptors);
  if (!guard_ranges) return propagate(guard_ranges);
  return lay_guard_ranges(std::move(*guard_ranges));
}

void Guard::wait_until_heard() {
  for (Milliseconds waited{}; waited < patience_ && !ledger_.is_heard(); ++waited) {
    (void)kernel_.poll({}, Milliseconds(1));
  }
}

void Guard::start() {
  if (started_.load(std::memory_order_acquire)) return;
  const std::lock_guard lock(start_mutex_);
  if (started_.exchange(true)) return;
  const ProbeResult result = known_probe_result(kernel_, Probed::GuardRanges);
  if (const Status up = come_up(result); !up) {
    ledger_.set_state(abi::GuardState::Off, to_string(up.error()));
    say("the guard is off: " + to_string(up.error()));
    return;
  }
  const bool tested = result.answer != ProbeResult::Answer::Untested;
  const std::string untested = tested ? "" : "not tested on this kernel and driver";
  ledger_.set_state(abi::GuardState::On, joined({address_space_->remark(), untested, passing_}));
  allocates_.store(passing_.empty(), std::memory_order_release);
  on_.store(true, std::memory_order_release);
  // A move that came meanwhile found no guard that was on.
  if (settings_.find_descriptors) follow_address_space();
  wait_until_heard();
}

void Guard::start_within_context() {
  if (started_.load(std::memory_order_acquire)) return;
  CUcontext context = nullptr;
  if (driver_->cuCtxGetCurrent(&context) == CUDA_SUCCESS && context != nullptr) start();
}

void Guard::pass_through(const std::string& reason) {
  const std::lock_guard lock(start_mutex_);
  if (!passing_.empty()) return;
  passing_ = reason;
  allocates_.store(false);
  if (is_on()) ledger_.set_state(abi::GuardState::On, reason);
}

void Guard::follow_address_space() {
  if (!is_on()) return;
  const Status followed = address_space_->follow();
  if (followed) return;
  ledger_.set_state(abi::GuardState::Off, "after a move: " + to_string(followed.error()));
  say("the guard is off after a move: " + to_string(followed.error()));
}

void Guard::leave_address_space() {
  if (is_on()) address_space_->leave();
}

CUresult Guard::refuse_to_share() {
  std::call_once(share_refused_, [] {
    say("memory of a guarded program cannot be shared with cuIpcGetMemHandle; run it with --guard-ipc "
        "--without spare, or with " +
        std::string(sharing_variable) + "=1");
  });
  return CUDA_ERROR_NOT_SUPPORTED;
}

}  // namespace firebreak::guard
