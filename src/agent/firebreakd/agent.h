// SPDX-License-Identifier: Apache-2.0
/// The agent: turns what tenants say and what detectors see into events of pairs, and carries out what pairs
/// decide. One thread, one loop; nothing here waits for a tenant.
#pragma once

#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "agent/domains/gpus.h"
#include "agent/endings/deaths.h"
#include "agent/endings/endings.h"
#include "agent/endings/hold/holder.h"
#include "agent/faults/watch/report.h"
#include "agent/firebreakd/joins.h"
#include "agent/firebreakd/shutdown.h"
#include "agent/firebreakd/strays.h"
#include "agent/loop/fair_queue.h"
#include "agent/loop/server.h"
#include "agent/loop/surroundings.h"
#include "agent/pairs/follower.h"
#include "agent/pairs/injections.h"
#include "agent/pairs/pairs.h"
#include "agent/parking/parking.h"
#include "agent/parking/spares.h"
#include "agent/resting/resting.h"
#include "agent/service/shelf_queue.h"
#include "agent/settings/options.h"
#include "agent/tenants/answers.h"
#include "agent/tenants/credentials.h"
#include "agent/tenants/descriptor_budget.h"
#include "agent/tenants/placements.h"
#include "agent/tenants/process.h"
#include "agent/tenants/recent_faults.h"
#include "agent/tenants/records.h"
#include "agent/tenants/tally.h"
#include "agent/tenants/teller.h"
#include "agent/tenants/tenant_clients.h"
#include "agent/tenants/tenant_memory.h"
#include "agent/tenants/tenants.h"
#include "agent/tenants/turn_keeper.h"
#include "agent/tenants/warm_standbys.h"
#include "agent/tenants/weights_keeper.h"
#include "ground/base/clock.h"
#include "ground/os/kernel.h"

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
  std::string status_json() const { return status_for({}); }

  /// Writes down what the next agent needs. Who calls it ends this process at once, without ending this
  /// object: then nothing is released, as of an agent that was killed.
  void hand_over();
  /// Ends everything (agent/firebreakd/shutdown.h), and then stops the loop.
  void shut_down() { shutdown_.begin(options_.end_grace); }
  bool is_shutting_down() const { return shutdown_.is_under_way(); }

  /// Somebody waits for what a shelf has not answered yet.
  bool awaits_shelves() const { return !shelves_.is_idle(); }
  /// Somebody waits for a tenant's next client.
  bool awaits_clients() const { return !clients_.is_idle(); }

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

  void begin_keeping();
  bool is_let_in(Connection& connection, const abi::Message& message);

  // Requests of tenants and of the firebreak command.
  void on_message(Connection& connection, abi::Message message, std::vector<os::Fd> descriptors) override;
  void on_closed(Connection& connection) override;
  std::string status_for(const Asking& who) const;
  Status room_for_user(const Connection& connection, const std::string& tenant) const;
  Status admit(Connection& connection, const abi::Message& request);
  void note_output(const Connection& connection, const abi::Output& output);
  Result<abi::Placed> place(const Connection& connection, const abi::Place& request);
  void give_core_dump_pipe(Connection& connection);
  void look_for_new_clients();
  Environment environment_for(const std::string& domain, const std::string& spare_domain,
                              const Connection& connection);
  void report_status(Connection& connection) const;

  // Events of the GPU.
  void on_fault(const fault::Fault& fault);
  void take_fault(const fault::Fault& fault);
  bool is_of_spares_owner(const fault::Fault& fault) const;
  static std::string domain_by_driver(const fault::Fault& fault, const Process& process);
  std::string domain_meant(const fault::Fault& fault) const;
  bool has_a_spare(pid_t pid) const;
  std::string domain_left_by(const Process& process) const;
  bool is_sure_of_domain(const fault::Fault& fault);
  bool says_of_reset(const fault::Fault& fault);
  void follow_up(const fault::Fault& fault, bool is_sure);
  void tell_fault(const fault::Fault& fault);
  void note_gpu(const fault::Fault& fault);
  Status recover_gpu(const std::string& named);
  void tell_gpu(const std::string& text);
  void on_fell(const std::string& domain);
  void on_incident(const fault::Incident& told);
  void on_counted(const PastFault& fault);
  void on_gap(const watch::Gap& gap);
  void on_clients_lost(const std::string& domain);
  void on_server(const std::string& domain, pid_t pid);
  void on_gpu_opened(pid_t pid);
  uid_t user_of(pid_t pid) const;
  void on_exit(pid_t pid);
  void tell_of(const Process& process, abi::EventKind what, std::string text);
  void on_moved(pid_t pid, const std::string& domain, const std::string& took);
  void tell_spare(pid_t pid, const SpareReport& now);
  void tell_silence(const std::string& shelf, bool is_silent);

  AgentOptions options_;
  os::EventLoop& loop_;
  os::Kernel& kernel_;
  const Clock& clock_;
  Domains& domains_;
  Detectors& detectors_;
  ServiceManager& manager_;
  ShelfQueue shelves_;
  Server server_{loop_, *this, {.clock = &clock_}};
  Tenants tenants_;
  Credentials credentials_;
  Teller teller_{clock_, server_, credentials_};
  Processes processes_;
  hold::Holder holder_;
  RecentFaults recent_faults_{clock_, kernel_};
  Placements placements_{{options_, loop_, domains_, tenants_, credentials_,
                          [this](const std::vector<std::string>& pipes) { parking_.remove_pipes(pipes); },
                          [this](pid_t pid, const std::string& domain) {
                            const Process* const process = processes_.living(pid);
                            return process != nullptr && process->may_be_in(domain);
                          },
                          [this](const std::string& domain) { return parking_.is_to_fall(domain); }}};
  SharedWeights weights_{options_.quota_bytes, options_.lease};
  DescriptorBudget budget_{{tenants_, placements_, processes_, weights_}, options_.descriptors_max};
  WarmStandbys warm_standbys_{{loop_, kernel_, domains_, server_, tenants_},
                              options_.server_patience,
                              [this](Tenant& tenant, const std::optional<Asker>& asker,
                                     const std::string& but) { pairs_.stand_by(tenant, asker, but); }};
  Tally tally_{{clock_, domains_, tenants_},
               {[this](const std::string& domain) { return parking_.is_to_fall(domain); },
                [this](pid_t pid) { return has_a_spare(pid); },
                [this](pid_t pid) { return processes_.control_group_of(pid); },
                [this](const fault::Gpu& gpu, const std::string& domain) {
                  return domain.empty() ? gpus_.is_ours(gpu)
                                        : fault::may_be_same(gpu, {.number = gpus_.number_of(domain)});
                },
                [this](const PastFault& fault) { on_counted(fault); }, nullptr,
                [this](const std::string& tenant) {
                  const auto user = credentials_.owner_of(tenant);
                  return user ? std::to_string(*user) : std::string();
                }}};
  watch::IncidentNews news_;
  Gpus gpus_{options_.gpus, domains_};
  Records records_{{manager_, tenants_, processes_, holder_, credentials_, placements_, warm_standbys_,
                    tally_, gpus_, weights_},
                   options_.returns_within};
  Answers answers_{tenants_, records_};
  Monotonic next_client_look_{};
  Spares spares_{
      {loop_, kernel_, domains_, processes_, clock_},
      {[this](const std::string& domain) { return parking_.is_to_fall(domain); },
       [this](pid_t pid, const std::string& domain, const std::string& took) { on_moved(pid, domain, took); },
       [this](pid_t pid, const SpareReport& now) { tell_spare(pid, now); }}};
  Resting resting_{{loop_, clock_, server_, tenants_, processes_, spares_, answers_, teller_},
                   [this](pid_t pid) { holder_.look(pid); }};
  ApartStarter starter_{loop_, manager_};
  Parking parking_{
      {options_, loop_, kernel_, starter_, domains_, clock_, tenants_, processes_, teller_, spares_},
      {[this](const std::string& tenant) { return joins_.hand_over({tenant}); },
       [this](pid_t pid, const fault::CoreDumpException& exception) {
         detectors_.note_exception(pid, exception);
       },
       [this](const std::string& domain, bool is_to_fall) { detectors_.set_going_on(domain, is_to_fall); },
       [this](const std::string& domain, const std::string& report) { tally_.note_report(domain, report); }}};
  Follower follower_{{kernel_, detectors_, holder_, processes_, tenants_, teller_, parking_,
                      [this](pid_t pid) { ends_.settle(pid); }}};
  Pairs pairs_{{loop_, kernel_, clock_, detectors_, server_, tenants_, processes_, warm_standbys_, tally_,
                records_, answers_, teller_, follower_}};
  AllocationGiver giver_{shelves_, server_, answers_};
  WeightsKeeper weights_keeper_{{options_, loop_, clock_, shelves_, server_, tenants_, credentials_, budget_,
                                 records_, answers_, giver_, teller_, weights_}};
  TenantMemory memory_{{options_, loop_, manager_, shelves_, server_, tenants_, credentials_, budget_,
                        records_, answers_, giver_, weights_keeper_, teller_}};
  TenantClients clients_{
      {options_, loop_, shelves_, server_, tenants_, credentials_, budget_, records_, answers_}};
  Endings endings_{{options_, loop_, kernel_, domains_, detectors_, server_, tenants_, processes_,
                    recent_faults_, records_, answers_, teller_, follower_, pairs_, memory_,
                    weights_keeper_}};
  Strays strays_{{options_, tenants_, processes_, recent_faults_, tally_, teller_, endings_}};
  Injections injections_{{server_, tenants_, answers_, teller_}};
  Deaths deaths_{{options_, kernel_, domains_, detectors_, holder_, tenants_, processes_, records_, teller_,
                  pairs_, memory_, endings_},
                 [this](const Asker& asker, const abi::Join& request) {
                   server_.handle(asker, [&](Connection& connection) { joins_.join(connection, request); });
                 }};
  Joins joins_{{options_, kernel_, clock_, domains_, server_, tenants_, processes_, credentials_, placements_,
                budget_, warm_standbys_, records_, answers_, teller_, follower_, pairs_, memory_, deaths_}};
  TurnKeeper turns_{{options_, loop_, clock_, domains_, tenants_, processes_, credentials_}};
  FairQueue ends_{loop_, clock_, [this](pid_t pid) { on_exit(pid); }};
  OrderlyShutdown shutdown_{{loop_, manager_, domains_, shelves_, server_, tenants_, processes_, placements_,
                             records_, parking_, memory_, endings_},
                            [this] { loop_.stop(); }};
};

}  // namespace firebreak::agent
