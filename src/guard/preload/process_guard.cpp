// SPDX-License-Identifier: Apache-2.0
#include "guard/preload/process_guard.h"

#include <algorithm>
#include <atomic>
#include <cstdlib>
#include <mutex>
#include <new>
#include <type_traits>
#include <utility>

#include "guard/preload/real_function.h"
#include "os/background_thread.h"
#include "os/library.h"
#include "os/self.h"

namespace firebreak::guard {
namespace {

thread_local bool bypassed = false;

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

TerritorySettings territory_settings() {
  constexpr std::uint64_t most_gib = 1024;
  TerritorySettings settings;
  const auto said = os::environment_variable(reach_variable);
  if (said) {
    const std::uint64_t reach_gib = std::strtoull(said->c_str(), nullptr, 10);
    settings.margins.reach_bytes = std::min(reach_gib, most_gib) * gib;
  }
  return settings;
}

}  // namespace

Bypass::Bypass() : before_(std::exchange(bypassed, true)) {}
Bypass::~Bypass() { bypassed = before_; }
bool Bypass::active() { return bypassed; }

std::string TenantKernel::uvm_link_target() const {
  return os::environment_variable("FIREBREAK_UVM_LINK").value_or(os::RealKernel::uvm_link_target());
}

Result<std::string> TenantKernel::gpu_driver() {
  if (auto named = os::environment_variable("FIREBREAK_GPU_DRIVER")) return std::move(*named);
  return os::RealKernel::gpu_driver();
}

std::unique_ptr<ProcessGuard> ProcessGuard::create(const void* driver_function) {
  const Bypass bypass;
  const auto library = os::library_of(driver_function);
  auto driver = cuda::Driver::load(library.value_or(""));
  if (!driver) return nullptr;
  std::unique_ptr<ProcessGuard> made(new ProcessGuard());
  made->driver_ = std::move(*driver);
  auto guard = Guard::create(*made->driver_, made->kernel_, territory_settings(), longest_wait());
  if (!guard) return nullptr;
  made->guard_ = std::move(*guard);
  abi::GuardWork& work = made->guard_->ledger().work();
  if (os::environment_variable(words_variable) == "0") {
    work.gaps.fetch_or(abi::GuardWorkNoWords);
  } else {
    made->words_ = std::make_unique<LaunchWords>(*made->driver_, work);
  }
  if (os::environment_variable(sharing_variable) == "1") {
    made->guard_->pass_through("the driver allocates by itself, unguarded, since memory is to be shared");
  }
  return made;
}

ProcessGuard* ProcessGuard::existing() { return instance.guard.load(std::memory_order_acquire); }

/// In a child of fork(). What the parent had stays where it is, since threads of the parent were using it;
/// its page is the parent's alone.
void ProcessGuard::begin_anew() {
  ProcessGuard* const parents = existing();
  new (&instance) Instance();
  forget_streams();
  forget_kernels();
  if (parents != nullptr) parents->guard().ledger().close_descriptor();
}

ProcessGuard* ProcessGuard::get(const void* driver_function) {
  if (instance.made.load(std::memory_order_acquire)) return existing();
  const std::lock_guard lock(instance.mutex);
  if (instance.made.load(std::memory_order_acquire)) return existing();
  static const bool prepared = [] {
    os::run_in_children(&ProcessGuard::begin_anew);
    return true;
  }();
  instance.guard.store(prepared ? create(driver_function).release() : nullptr, std::memory_order_release);
  instance.made.store(true, std::memory_order_release);
  return existing();
}

}  // namespace firebreak::guard
