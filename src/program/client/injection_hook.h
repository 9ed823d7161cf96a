// SPDX-License-Identifier: Apache-2.0
/// Faults on purpose inside a tenant, when an operator asks the agent for one. Off unless the tenant was
/// started with FIREBREAK_ALLOW_INJECTION=1; only then is the library that can raise faults loaded.
#pragma once

#include <atomic>
#include <cstdint>
#include <mutex>
#include <optional>
#include <string>

#include "shared/link/agent_link.h"

namespace firebreak::client {

/// One a session. `request` is for the link's thread, `at_commit` for the tenant's.
class InjectionHook {
 public:
  /// `link` outlives it.
  explicit InjectionHook(link::AgentLink& link) : link_(link) {}

  /// The agent forwarded this: it is taken, or refused with one line.
  void request(const abi::Inject& wanted);

  /// This is called once a commit, with the tenant's context current. It raises the fault that is due, after
  /// saying so.
  void at_commit() {
    if (waiting_.load(std::memory_order_acquire)) count_down();
  }

 private:
  void count_down();
  void raise(const std::string& kind);
  void refuse(const std::string& reason);

  link::AgentLink& link_;
  std::atomic<bool> waiting_ = false;  ///< published with release after wanted_ was set
  std::mutex mutex_;
  std::optional<abi::Inject> wanted_;  ///< guarded by mutex_
};

}  // namespace firebreak::client
