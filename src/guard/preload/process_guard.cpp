// SPDX-License-Identifier: Apache-2.0
#include "guard/preload/process_guard.h"

#include <cstdlib>
#include <utility>

#include "os/library.h"
#include "os/self.h"

namespace firebreak::guard {
namespace {

thread_local bool bypassed = false;

/// How long a start waits for an agent to hear strays. It takes milliseconds on a busy machine, and one that
/// may not look into this process never comes.
Milliseconds longest_wait() {
  constexpr Milliseconds by_default{200};
  if (!os::environment_variable("FIREBREAK_SOCKET")) return Milliseconds(0);
  const auto said = os::environment_variable(wait_variable);
  return said ? Milliseconds(std::strtoul(said->c_str(), nullptr, 10)) : by_default;
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
  auto guard = Guard::create(*made->driver_, made->kernel_, {}, longest_wait());
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

ProcessGuard* ProcessGuard::get(const void* driver_function) {
  static const pid_t owner = os::own_pid();
  static ProcessGuard* const process = create(driver_function).release();
  return owner == os::own_pid() ? process : nullptr;
}

}  // namespace firebreak::guard
