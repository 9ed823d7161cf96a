// SPDX-License-Identifier: Apache-2.0
#include "program/client/injection_hook.h"

#include <array>

#include "ground/os/self.h"
#include "program/client/injection_library.h"

namespace firebreak::client {
namespace {

constexpr const char* not_allowed =
    "this tenant takes no faults on purpose (start it with FIREBREAK_ALLOW_INJECTION=1)";

void say_raised(void* link) {
  const abi::Injected raised{to_ns(SystemClock().now()), ""};
  (void)static_cast<link::AgentLink*>(link)->tell(raised);
}

}  // namespace

void InjectionHook::request(const abi::Inject& wanted) {
  if (os::environment_variable("FIREBREAK_ALLOW_INJECTION") != "1") return refuse(not_allowed);
  {
    const std::lock_guard lock(mutex_);
    wanted_ = wanted;
  }
  waiting_.store(true, std::memory_order_release);
}

void InjectionHook::count_down() {
  std::string due;
  {
    const std::lock_guard lock(mutex_);
    if (wanted_->commits > 1) {
      --wanted_->commits;
      return;
    }
    due = wanted_->kind;
    wanted_.reset();
    waiting_.store(false, std::memory_order_relaxed);
  }
  raise(due);
}

void InjectionHook::raise(const std::string& kind) {
  const auto symbol = os::load_symbol(os::beside_this_library(injection_library), injection_symbol);
  if (!symbol) return refuse(to_string(symbol.error()));
  std::array<char, 512> why{};
  auto* raise_fault = reinterpret_cast<RaiseFault*>(*symbol);
  if (raise_fault(kind.c_str(), &say_raised, &link_, why.data(), why.size()) != 0) refuse(why.data());
}

void InjectionHook::refuse(const std::string& reason) { (void)link_.tell(abi::Injected{0, reason}); }

}  // namespace firebreak::client
