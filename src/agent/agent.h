// SPDX-License-Identifier: Apache-2.0
/// The agent: turns what tenants say and what detectors see into events of pairs, and carries out what pairs
/// decide. One thread, one loop; nothing here waits for a tenant.
#pragma once

#include <functional>
#include <map>
#include <memory>
#include <nlohmann/json_fwd.hpp>
#include <optional>
#include <set>
#include <string>
#include <string_view>
#include <vector>

#include "agent/answers.h"
#include "agent/credentials.h"
#include "agent/deaths.h"
#include "agent/descriptor_budget.h"
#include "agent/endings.h"
#include "agent/follower.h"
#include "agent/injections.h"
#include "agent/kept_state.h"
#include "agent/options.h"
#include "agent/orderly_end.h"
#include "agent/pairs.h"
#include "agent/placements.h"
#include "agent/process.h"
#include "agent/recent_faults.h"
#include "agent/records.h"
#include "agent/server.h"
#include "agent/shelf_queue.h"
#include "agent/strays.h"
#include "agent/surroundings.h"
#include "agent/teller.h"
#include "agent/tenant_clients.h"
#include "agent/tenant_memory.h"
#include "agent/tenants.h"
#include "agent/warm_standbys.h"
#include "base/clock.h"
#include "hold/holder.h"
#include "os/kernel.h"

namespace firebreak::agent {

/// Belongs to the loop's thread.
class Agent final : private ServerHandler {
 public:
  /// Starts domains and detectors, then listens. `kernel`, `clock`, `domains` and `detectors` outlive the
  /// agent.
  static Result<std::unique_ptr<Agent>> start(const AgentOptions& options, os::EventLoop& loop,
                                              os::Kernel& kernel, const Clock& clock, Domains& domains,
                                              Detectors& detectors, ServiceManager& manager);

  /// The document that `firebreak status` prints.
  std::string status_json() const;

  /// Somebody waits for what a shelf has not answered yet.
  bool awaits_shelves() const { return !shelves_.is_idle(); }

 private:
  Agent(AgentOptions options, os::EventLoop& loop, os::Kernel& kernel, const Clock& clock, Domains& domains,
        Detectors& detectors, ServiceManager& manager)
      : options_(std::move(options)),
        loop_(loop),
        kernel_(kernel),
        clock_(clock),
        domains_(domains),
        detectors_(detectors),
        manager_(manager),
        shelves_(loop, kernel, manager, options_.shelf_command,
                 [this](const std::string& shelf, bool is_silent) { tell_silence(shelf, is_silent); }),
        holder_(loop, kernel, clock,
                {.takes_duplicates = options_.hold > Milliseconds(0),
                 .hold = options_.hold,
                 .longest = options_.longest_hold},
                {[this](pid_t pid) { return deaths_.watch_work(pid); },
                 [this](pid_t pid) { deaths_.on_endless(pid); },
                 [this](const hold::Release& release) { deaths_.on_released(release); },
                 [this](pid_t pid, const hold::Findings& others) { deaths_.on_others(pid, others); },
                 [this](pid_t pid) { deaths_.on_traces(pid); },
                 [this](pid_t pid) { endings_.on_other_program(pid); }}) {}

  // Messages: one function each, in agent_messages.cpp and agent_joins.cpp.
  void on_message(Connection& connection, abi::Message message, std::vector<os::Fd> descriptors) override;
  void on_closed(Connection& connection) override;
  Status adopt(const abi::Adopt& request);
  Status adopt_from(const Connection& connection, const abi::Adopt& request);
  void join(Connection& connection, const abi::Join& request);
  bool has_joined(const Connection& connection, Tenant& tenant, const abi::Join& request) const;
  void welcome(Connection& connection, Tenant& tenant, abi::Role role);
  void report_status(Connection& connection) const;
  void ready(Connection& connection);
  Status may_join(const Tenant& tenant, const abi::Join& request) const;

  // Who joins, in agent_joins.cpp.
  void tell_joined(const Tenant& tenant, const Member& member, const std::string& how);
  Status hand_over(const abi::HandOver& request);
  Status stand_down(Connection& connection, const abi::StandDown& request);

  // What happens, in agent.cpp.
  void on_fault(const fault::Fault& fault);
  void on_gap(const watch::Gap& gap);
  void on_clients_lost(const std::string& domain);
  void on_server(const std::string& domain, pid_t pid);
  void on_gpu_opened(pid_t pid);
  Result<abi::Placed> place(const Connection& connection, const abi::Place& request);

  // What outlives the agent itself, in agent_restart.cpp.
  void begin_keeping();
  void tell_silence(const std::string& shelf, bool is_silent);
  std::vector<pid_t> restore(const KeptTenant& kept, std::map<std::string, os::Fd>& descriptors);
  std::vector<pid_t> restore_members(Tenant& tenant, const KeptTenant& kept);
  void tell_restored(const Tenant& tenant);
  Status rejoin(Connection& connection, const abi::Rejoin& request);
  void stands_by_again(Tenant& tenant, bool ready);

  // Who is who.
  Result<Tenant*> tenant_named(const std::string& name);  ///< made where it is new
  std::vector<std::string> lacks_of(const Tenant& tenant) const;
  std::vector<pid_t> processes_in(const std::string& domain) const;
  nlohmann::json foreign_json(const std::string& domain) const;
  bool is_sure_of_domain(const fault::Fault& fault);
  void follow_up(const fault::Fault& fault, bool is_sure);

  AgentOptions options_;
  os::EventLoop& loop_;
  os::Kernel& kernel_;
  const Clock& clock_;
  Domains& domains_;
  Detectors& detectors_;
  ServiceManager& manager_;
  ShelfQueue shelves_;
  Server server_{loop_, *this};
  Teller teller_{clock_, server_};
  Tenants tenants_;
  Credentials credentials_;
  Processes processes_;
  hold::Holder holder_;
  RecentFaults recent_faults_{clock_, kernel_};
  Placements placements_{{.options = options_,
                          .loop = loop_,
                          .domains = domains_,
                          .tenants = tenants_,
                          .credentials = credentials_}};
  DescriptorBudget budget_{{.tenants = tenants_, .placements = placements_, .processes = processes_},
                           options_.descriptors_max};
  WarmStandbys warm_standbys_{
      {.loop = loop_, .kernel = kernel_, .domains = domains_, .server = server_, .tenants = tenants_},
      options_.server_patience,
      [this](Tenant& tenant, const std::optional<Asker>& asker, const std::string& but) {
        pairs_.stand_by(tenant, asker, but);
      }};
  Records records_{{.manager = manager_,
                    .tenants = tenants_,
                    .processes = processes_,
                    .holder = holder_,
                    .credentials = credentials_,
                    .placements = placements_,
                    .warm_standbys = warm_standbys_},
                   options_.returns_within};
  Answers answers_{tenants_, records_};
  Follower follower_{{.kernel = kernel_,
                      .detectors = detectors_,
                      .holder = holder_,
                      .processes = processes_,
                      .tenants = tenants_,
                      .teller = teller_}};
  Pairs pairs_{{.loop = loop_,
                .kernel = kernel_,
                .clock = clock_,
                .detectors = detectors_,
                .server = server_,
                .tenants = tenants_,
                .processes = processes_,
                .warm_standbys = warm_standbys_,
                .records = records_,
                .answers = answers_,
                .teller = teller_,
                .follower = follower_}};
  TenantMemory memory_{{.options = options_,
                        .loop = loop_,
                        .manager = manager_,
                        .shelves = shelves_,
                        .server = server_,
                        .tenants = tenants_,
                        .credentials = credentials_,
                        .budget = budget_,
                        .records = records_,
                        .answers = answers_,
                        .teller = teller_}};
  TenantClients clients_{{.shelves = shelves_,
                          .server = server_,
                          .tenants = tenants_,
                          .records = records_,
                          .answers = answers_}};
  Endings endings_{{.options = options_,
                    .loop = loop_,
                    .kernel = kernel_,
                    .domains = domains_,
                    .detectors = detectors_,
                    .server = server_,
                    .tenants = tenants_,
                    .processes = processes_,
                    .recent_faults = recent_faults_,
                    .records = records_,
                    .answers = answers_,
                    .teller = teller_,
                    .follower = follower_,
                    .pairs = pairs_,
                    .memory = memory_}};
  Strays strays_{{.options = options_,
                  .tenants = tenants_,
                  .processes = processes_,
                  .recent_faults = recent_faults_,
                  .teller = teller_,
                  .endings = endings_}};
  Injections injections_{{.server = server_, .tenants = tenants_, .answers = answers_, .teller = teller_}};
  Deaths deaths_{{.options = options_,
                  .kernel = kernel_,
                  .domains = domains_,
                  .detectors = detectors_,
                  .holder = holder_,
                  .tenants = tenants_,
                  .processes = processes_,
                  .records = records_,
                  .teller = teller_,
                  .pairs = pairs_,
                  .memory = memory_,
                  .endings = endings_},
                 [this](const Asker& asker, const abi::Join& request) {
                   server_.handle(asker, [&](Connection& connection) { join(connection, request); });
                 }};
};

}  // namespace firebreak::agent
