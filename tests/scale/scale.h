// SPDX-License-Identifier: Apache-2.0
/// So many pairs at once under one agent on software GPUs, each with as many allocations as it may have: that
/// they become protected, that `firebreak status` answers, that the next agent has everything after a kill,
/// that a fault promotes every standby of its domain and nobody else's, and that the outputs are what they
/// would have been.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "ground/base/clock.h"
#include "ground/platform/platform.h"
#include "shared/link/agent_link.h"
#include "shared/link/status_view.h"
#include "stage/stage.h"
#include "tests/scale/process_cost.h"

namespace firebreak::scale {

struct Settings {
  std::string programs;
  std::string directory;  ///< private, short, empty
  std::uint32_t tenants = 1;
  std::uint32_t gpus = 1;            ///< with two MPS domains each
  std::uint32_t descriptors = 256;   ///< Each process of a tenant begins with this much.
  std::uint32_t more_memory = 1019;  ///< allocations besides the sample tenant's own
  std::uint64_t steps = 60;
  Milliseconds pace{250};            ///< and more where there are many: two cores compute for all of them
  Milliseconds patience{1'200'000};  ///< for any one thing
};

/// Milliseconds; what was seen.
struct Figures {
  std::uint32_t tenants = 0;
  std::uint32_t gpus = 0;
  std::uint64_t allocations = 0;
  double idle_percent = 0;        ///< of a core, that the agent takes while nothing happens
  double join_ms = 0;             ///< The time runs from the first start until everybody has a ready standby.
  std::vector<double> status_ms;  ///< `firebreak status --json`, whole program
  std::uint64_t status_bytes = 0;
  double restart_ms = 0;             ///< The time runs from the agent's kill until the next one says that all
                                     ///< are protected.
  double rejoin_ms = 0;              ///< The time runs until all processes have come back to it.
  std::vector<double> promotion_ms;  ///< The time runs from the fault's Xid to each tenant's promotion.
  std::vector<double> first_kernel_ms;     ///< to its first kernel done
  std::vector<double> protected_again_ms;  ///< The time runs from each promotion to the next ready standby.
  ProcessCost agent, shelves, supervisor;  ///< when all were protected
  ProcessCost next_agent;                  ///< when all were back
  std::uint32_t hit = 0;                   ///< tenants whose actives were in the domain of the fault
};

class Scale {
 public:
  Scale(const Settings& settings, platform::Platform& platform, const Clock& clock,
        std::function<void(const std::string&)> tell)
      : settings_(settings), platform_(platform), clock_(clock), tell_(std::move(tell)) {}

  /// A claim that did not hold is an error.
  Result<Figures> run();

 private:
  struct Tenant {
    std::string name;
    std::string output_path;
    bool is_hit = false;  ///< its active is in the domain of the fault
    stage::Actor* pair = nullptr;
    std::int64_t promoted_at_ns = 0;
    std::int64_t resumed_at_ns = 0;
    std::int64_t protected_at_ns = 0;  ///< again
  };
  struct Asked {
    std::string text;
    double lasted_ms = 0;
  };

  Status play();
  Status start_agent();
  Status start_tenants();
  Status look_at_status();
  Status look_at_idle_agent();
  Status kill_agent();
  Status raise_fault();
  Status finish();
  Status end();
  /// This checks that the agent knows every tenant with all its allocations.
  Status check_memory();
  Status note_who_is_hit();
  std::string first_domain() const { return settings_.gpus > 1 ? "0a" : "a"; }
  /// The fault hit these.
  template <class Condition>
  bool holds_for_all_hit(const Condition& condition) const;
  /// These are there and ready; the play waits for them.
  Status wait_until_protected(const std::string& why, bool is_every_process_back);
  Status subscribe();
  void hear(const abi::Event& event);
  Result<Asked> ask(const std::vector<std::string>& arguments);
  std::optional<std::string> status() const;
  pid_t agent() const;
  std::vector<pid_t> shelves() const;
  double ms_since(Monotonic begin) const;

  const Settings& settings_;
  platform::Platform& platform_;
  const Clock& clock_;
  std::function<void(const std::string&)> tell_;
  std::unique_ptr<stage::Stage> stage_;
  os::Watch tick_;
  stage::Actor* supervisor_ = nullptr;
  std::unique_ptr<link::AgentLink> events_;
  std::vector<Tenant> tenants_;
  std::int64_t fault_at_ns_ = 0;
  Figures figures_;
};

}  // namespace firebreak::scale
