// SPDX-License-Identifier: Apache-2.0
/// Tenants at work for a long time, while everything that can happen to them happens: whether each of the
/// promises (ARCHITECTURE.md) still holds afterwards.
#pragma once

#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "ground/os/kernel.h"
#include "ground/platform/platform.h"
#include "shared/link/status_view.h"
#include "soak/epochs.h"
#include "soak/plan.h"
#include "soak/record.h"
#include "soak/settings.h"
#include "soak/supervised_agent.h"
#include "soak/told_steps.h"
#include "stage/stage.h"

namespace firebreak::soak {

class Soak {
 public:
  /// `tell` gets a line now and then. All of them outlive it.
  Soak(const Settings& settings, platform::Platform& platform, const Clock& clock,
       std::function<void(const std::string&)> tell)
      : settings_(settings), platform_(platform), clock_(clock), tell_(std::move(tell)) {}

  /// Everything, from the references to the agent's end. What did not hold is in the record; an error is what
  /// kept the soak from running to its end.
  Result<Record> run();

 private:
  /// One tenant, over all its processes.
  struct Tenant {
    std::string name;
    std::string workload;
    std::string output_path;
    stage::Actor* pair = nullptr;  ///< `firebreak run --pair`
    ToldSteps ledger;
    std::optional<link::TenantView> view;
    std::uint64_t epoch = 0;
    Monotonic restart_at{};  ///< the moment of its loss; the clock's begin: it was not lost
    /// True where it was never protected, or where the disturbances since everybody was could have ended both
    /// of its processes.
    bool may_be_lost = true;
    bool is_done = false;
    pid_t doomed = 0;         ///< its active, which raises a fault at its next commit; 0: none does
    std::string tight_start;  ///< a script that its programs are started by; empty: nobody has too little
  };
  /// A tenant that came in a crowd: it finishes, or is told why not.
  struct Visitor {
    std::string name;
    std::string workload;
    std::string output_path;
    stage::Actor* pair = nullptr;
    std::unique_ptr<ToldSteps> ledger = std::make_unique<ToldSteps>();
  };

  Status compute_references();
  Status play();
  Status close();
  Status deal(const Disturbance& disturbance);
  Status fall(const Disturbance& disturbance, Tenant& tenant);
  void kill(pid_t pid);
  Status raise_fault(const Disturbance& disturbance, Tenant& tenant);
  void kill_agent();
  Status wait_for_culprits();
  bool is_awaited(const Tenant& tenant) const;
  Status settle();
  Status pause(Milliseconds time);
  void look();
  Status fill();
  Status start(Tenant& tenant);
  /// `firebreak run --pair` of it.
  std::vector<std::string> pair_command(const std::string& name, const std::string& workload,
                                        const std::string& output, const std::string& tight_start,
                                        std::uint64_t steps) const;

  // Disturbances at the edges, in edges.cpp.
  void break_links(const Disturbance& disturbance, const Tenant& tenant);
  void break_links_of(pid_t pid);
  void starve(const Disturbance& disturbance, Tenant& tenant);
  Status crowd(const Disturbance& disturbance);
  void take_note_of_visitors();
  std::vector<std::string> edge_arguments(std::size_t number) const;
  void hear(const abi::Event& event);

  Status take_note_of_ends();
  void judge(Tenant& tenant, const Result<std::string>& output);
  bool is_protected() const;
  std::vector<Tenant*> running();
  std::vector<std::string> workload_command(const std::string& workload, const std::string& output,
                                            std::uint64_t steps) const;
  void tell_who_is_unprotected();
  Environment environment() const;
  std::string mark() const { return "FIREBREAK_SOAK=" + settings_.directory; }
  void violate(std::string line);
  void show_what_led_to_it();

  const Settings& settings_;
  platform::Platform& platform_;
  const Clock& clock_;
  std::function<void(const std::string&)> tell_;
  std::unique_ptr<stage::Stage> stage_;
  os::Watch tick_;  ///< we look again, though nobody says anything
  std::unique_ptr<SupervisedAgent> agent_;
  std::map<std::string, std::string> references_;  ///< a workload's output without any fault
  std::vector<std::unique_ptr<Tenant>> tenants_;
  std::vector<stage::Actor*> culprits_;  ///< actors that raise faults, until they have ended
  std::vector<Visitor> visitors_;        ///< kept until they have ended
  std::uint32_t visitors_seen_ = 0;
  Epochs epochs_;
  Record record_;
  std::vector<std::string> disturbances_;     ///< told when a promise does not hold
  std::optional<std::uint32_t> shown_after_;  ///< count of faults that led to a violation
  std::uint32_t faults_left_ = 0;
  std::optional<link::StatusView> status_;  ///< empty while there is no agent
};

}  // namespace firebreak::soak
