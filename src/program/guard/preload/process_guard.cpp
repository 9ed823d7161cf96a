// SPDX-License-Identifier: Apache-2.0
#include "program/guard/preload/process_guard.h"

#include <algorithm>
#include <atomic>
#include <cstdlib>
#include <mutex>
#include <new>
#include <type_traits>
#include <utility>
#include <vector>

#include "ground/os/self.h"
#include "program/guard/preload/counting.h"
#include "program/guard/preload/process_driver.h"
#include "program/guard/say.h"
#include "program/virtual/process.h"

namespace firebreak::guard {
namespace {

/// The one guard. Its memory is taken over by a child of fork(), whatever state it was in.
struct Instance {
  std::mutex mutex;
  std::atomic<bool> made{false};
  std::atomic<ProcessGuard*> guard{nullptr};
};
static_assert(std::is_trivially_destructible_v<Instance>);
constinit Instance instance;

/// How long a start waits for an agent to hear strays. It takes milliseconds on a busy machine, and one that
/// may not look into this process never comes.
Milliseconds longest_wait() {
  constexpr Milliseconds by_default{200};
  if (!os::environment_variable("FIREBREAK_SOCKET")) return Milliseconds(0);
  const auto said = os::environment_variable(wait_variable);
  return said ? Milliseconds(std::strtoul(said->c_str(), nullptr, 10)) : by_default;
}

/// The window of addresses that all instances have is the virtual driver's: around our own reservations in it
/// nothing is free. So they are large enough to reach as far.
void in_window(GuardedAddressSpaceSettings& settings) {
  settings.tail_bytes = settings.margins.reach_bytes;
  settings.piece_bytes = std::max(settings.piece_bytes, 2 * settings.margins.reach_bytes);
  settings.guard_range_bytes_max = 2 * settings.guard_range_bytes_max;
  settings.find_descriptors = [] { return virtual_driver::process()->active().uvm_descriptors(); };
}

GuardedAddressSpaceSettings address_space_settings() {
  constexpr std::uint64_t most_gib = 1024;
  GuardedAddressSpaceSettings settings;
  const auto said = os::environment_variable(reach_variable);
  if (said) {
    const std::uint64_t reach_gib = std::strtoull(said->c_str(), nullptr, 10);
    settings.margins.reach_bytes = std::min(reach_gib, most_gib) * gib;
  }
  if (virtual_driver::process() != nullptr) in_window(settings);
  return settings;
}

}  // namespace

TenantKernel::TenantKernel(const cuda::Driver& driver) {
  void* const describe = driver.symbol(abi::describe_stand_in_symbol);
  if (describe != nullptr) stand_in_ = reinterpret_cast<abi::DescribeStandIn*>(describe)();
}

std::string TenantKernel::uvm_link_target() const {
  return stand_in_ ? stand_in_->uvm_link_target : os::RealKernel::uvm_link_target();
}

Result<std::string> TenantKernel::gpu_driver() {
  return stand_in_ ? std::string(stand_in_->name) : os::RealKernel::gpu_driver();
}

std::unique_ptr<ProcessGuard> ProcessGuard::create(const cuda::Driver& driver) {
  const Bypass bypass;
  if (os::environment_variable(guard_variable) == "0") return nullptr;
  std::unique_ptr<ProcessGuard> made(new ProcessGuard(driver));
  auto guard = Guard::create(driver, made->kernel_, address_space_settings(), longest_wait());
  if (!guard) {
    say("the guard is off: " + to_string(guard.error()));
    return nullptr;
  }
  made->guard_ = std::move(*guard);
  abi::GuardWork& work = made->guard_->ledger().work();
  if (os::environment_variable(markers_variable) == "0") {
    work.gaps.fetch_or(abi::GuardWorkNoMarkers);
  } else if (auto* const moves = virtual_driver::process(); moves != nullptr) {
    // A marker's word is that of one instance. What the program has waited for, all of them have done.
    moves->word().be_told_at(work.launches[0].begun, work.done[0]);
    work.slots.store(1);
  } else {
    made->markers_ = std::make_unique<CompletionMarkers>(driver, work);
  }
  if (os::environment_variable(sharing_variable) == "1") {
    made->guard_->pass_through("the driver allocates by itself, unguarded, since memory is to be shared");
  }
  return made;
}

ProcessGuard* ProcessGuard::existing() { return instance.guard.load(std::memory_order_acquire); }

/// Begins anew in a child of fork(). The parent's things stay where they are, since threads of the parent
/// were using them; its page is the parent's alone.
void ProcessGuard::begin_anew() {
  ProcessGuard* const parents = existing();
  new (&instance) Instance();
  ProcessDriver::begin_anew();
  forget_streams();
  forget_kernels();
  if (parents != nullptr) parents->guard().ledger().close_descriptor();
}

ProcessGuard* ProcessGuard::get(const void* driver_function) {
  if (instance.made.load(std::memory_order_acquire)) return existing();
  static const bool prepared = [] {
    os::run_in_children(&ProcessGuard::begin_anew);
    return true;
  }();
  const cuda::Driver* const driver = prepared ? ProcessDriver::seen(driver_function) : nullptr;
  const std::lock_guard lock(instance.mutex);
  if (instance.made.load(std::memory_order_acquire)) return existing();
  instance.guard.store(driver == nullptr ? nullptr : create(*driver).release(), std::memory_order_release);
  instance.made.store(true, std::memory_order_release);
  return existing();
}

CompletionMarkers* markers_of_process() {
  ProcessGuard* const process = ProcessGuard::get();
  return process == nullptr ? nullptr : process->markers();
}

CompletionMarkers* existing_markers() {
  ProcessGuard* const process = ProcessGuard::existing();
  return process == nullptr ? nullptr : process->markers();
}

}  // namespace firebreak::guard
