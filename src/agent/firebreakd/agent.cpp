// SPDX-License-Identifier: Apache-2.0
#include "agent/firebreakd/agent.h"

#include <fcntl.h>

#include <fmt/format.h>
#include <spdlog/spdlog.h>

#include <charconv>

#include "agent/faults/fault/core_dump.h"
#include "agent/faults/fault/source_traits.h"
#include "agent/firebreakd/restart.h"
#include "agent/firebreakd/status.h"
#include "agent/loop/journal.h"
#include "agent/pairs/inner_pids.h"
#include "ground/base/overloaded.h"
#include "ground/base/text.h"
#include "shared/dump_mode/mode.h"

namespace firebreak::agent {
namespace {

/// `what`: it was asked for, or refused.
void audit(Server& server, spdlog::level::level_enum level, const char* what, std::string_view request,
           const std::string& tenant, const Connection& connection, const std::string& why) {
  if (!spdlog::should_log(level)) return;
  const auto left_out = server.may_log(connection);
  if (!left_out) return;
  const auto& by = connection.peer();
  log_with(level,
           {{"AUDIT", what},
            {"REQUEST", std::string(request)},
            {"TENANT", tenant},
            {"BY_UID", std::to_string(by.uid)},
            {"BY_PID", std::to_string(by.pid)}},
           fmt::format("{}: {} tenant={} by uid={} pid={}{}{}", what, request.empty() ? "a request" : request,
                       tenant, by.uid, by.pid, why.empty() ? "" : ": ", why) +
               (*left_out == 0 ? "" : fmt::format(" ({} more of that user were before it)", *left_out)));
}

/// True when the driver says so: UVM's event of it reads as that of an SM's access.
bool is_of_copy_engine(const fault::Fault& fault) {
  return fault.source == fault::FaultSource::Xid &&
         fault.fault_class == fault::FaultClass::MmuNonReplayable && !fault::ends_group(fault);
}

/// An active and a standby, and each once more where a keeper starts it anew.
constexpr std::size_t placements_of_tenant_max = 4;

Status peer_is_gone() {
  return fail(ErrorCode::PermissionDenied,
              "the process that opened this connection has ended, or is another user's by now");
}

/// Returns what its source knows of, where it is sure of the domain.
RecentFaults::Confirms confirmed_by(const fault::Fault& fault) {
  if (is_of_copy_engine(fault)) return RecentFaults::Confirms::Nothing;
  return fault::traits_of(fault.source).is_uvm ? RecentFaults::Confirms::MemoryFaults
                                               : RecentFaults::Confirms::All;
}

bool may_change_turns(const abi::Message& request) {
  return std::holds_alternative<abi::TurnWanted>(request) || std::holds_alternative<abi::Join>(request) ||
         std::holds_alternative<abi::Rejoin>(request) || std::holds_alternative<abi::StandDown>(request) ||
         std::holds_alternative<abi::Resumed>(request) || std::holds_alternative<abi::Finish>(request);
}

/// Largest addition of a request's number to an answer.
constexpr std::size_t number_bytes = 64;

constexpr Milliseconds shelves_patience{1'000};

constexpr std::size_t longest_notice_bytes = 512;

/// Pause between questions to MPS for processes that ask for what its clients may have.
constexpr Milliseconds between_client_looks{100};

}  // namespace

Result<std::unique_ptr<Agent>> Agent::start(const AgentOptions& options, os::EventLoop& loop,
                                            os::Kernel& kernel, const Clock& clock, Domains& domains,
                                            Detectors& detectors, ServiceManager& manager) {
  std::unique_ptr<Agent> agent(new Agent(options, loop, kernel, clock, domains, detectors, manager));
  Agent* raw = agent.get();
  Domains::Callbacks of_domains;
  of_domains.on_clients_lost = [raw](const std::string& domain) { raw->on_clients_lost(domain); };
  of_domains.on_server = [raw](const std::string& domain, pid_t pid) { raw->on_server(domain, pid); };
  of_domains.on_clients = [raw](const std::string& domain, const mps::ClientList& clients) {
    if (!raw->follower_.on_clients(domain, clients)) return;
    raw->records_.save();
    raw->turns_.look();  // who was nowhere took nobody's time
  };
  if (auto started = domains.start(std::move(of_domains)); !started) return propagate(started);
  agent->gpus_.begin();
  Detectors::Callbacks callbacks;
  callbacks.on_fault = [raw](const fault::Fault& fault) { raw->on_fault(fault); };
  callbacks.on_exit = [raw](pid_t pid) { raw->ends_.put(raw->user_of(pid), pid); };
  callbacks.on_gpu_opened = [raw](pid_t pid) { raw->on_gpu_opened(pid); };
  callbacks.on_stray = [raw](const strays::Stray& stray) { raw->strays_.on_stray(stray); };
  callbacks.on_contained = [raw](pid_t pid, const std::string& what) {
    raw->strays_.on_contained(pid, what);
  };
  callbacks.on_guard = [raw](pid_t pid, const strays::GuardReport& guard) {
    raw->strays_.on_guard(pid, guard);
  };
  callbacks.on_incident = [raw](const fault::Incident& incident) { raw->on_incident(incident); };
  callbacks.on_gap = [raw](const watch::Gap& gap) { raw->on_gap(gap); };
  const auto missing = detectors.start(std::move(callbacks));
  for (const std::string& line : missing) spdlog::warn("{}", line);
  agent->parking_.begin();
  agent->begin_keeping();
  agent->turns_.begin();
  if (auto listens = agent->server_.listen(options.sockets()); !listens) return propagate(listens);
  manager.tell_ready();
  return agent;
}

void Agent::begin_keeping() {
  Restart({options_,    kernel_, domains_,       manager_, shelves_, tenants_,       processes_, credentials_,
           placements_, budget_, warm_standbys_, tally_,   gpus_,    records_,       teller_,    follower_,
           pairs_,      memory_, clients_,       endings_, deaths_,  weights_keeper_},
          [this](const std::string& domain) { on_clients_lost(domain); })
      .run();
}

/// Allocations on their way to a shelf are waited for, not for long: whoever asked for it asks again.
void Agent::hand_over() {
  const SystemClock clock;
  const Monotonic until = clock.now() + shelves_patience;
  while (awaits_shelves() && clock.now() < until) loop_.run_once(Milliseconds(10));
  records_.save();
}

std::string Agent::status_for(const Asking& who) const {
  return agent::status_json({options_, clock_, detectors_, domains_, tenants_, processes_, holder_, budget_,
                             parking_, spares_, credentials_, tally_, gpus_, turns_, weights_},
                            who);
}

// --- what tenants and the firebreak command ask
// ---------------------------------------------------------------------------------------------------

void Agent::on_message(Connection& connection, abi::Message message, std::vector<os::Fd> descriptors) {
  if (auto may = admit(connection, message); !may) return answers_.give(connection, may);
  if (answers_.is_done(connection)) return answers_.give(connection, {});
  if (!is_let_in(connection, message)) return;
  if (auto ours = translate_pids(kernel_, connection.peer().pid, message); !ours)
    return answers_.give(connection, ours);
  std::visit(
      Overloaded{
          [&](const abi::Join& request) {
            if (auto room = room_for_user(connection, request.tenant); !room)
              return answers_.give(connection, room);
            joins_.join(connection, request);
          },
          [&](const abi::Publish& request) {
            memory_.publish(connection, request,
                            std::make_shared<std::vector<os::Fd>>(std::move(descriptors)));
          },
          [&](const abi::GiveAllocation& request) { memory_.give_allocation(connection, request); },
          [&](const abi::Share& request) { weights_keeper_.share(connection, request); },
          [&](const abi::GiveShared& request) { weights_keeper_.give(connection, request); },
          [&](const abi::Rejoin& request) { answers_.give(connection, joins_.rejoin(connection, request)); },
          [&](const abi::StandDown& request) {
            answers_.give_once(connection, joins_.stand_down(connection, request));
          },
          [&](const abi::Listen&) {
            clients_.take_listener(connection, std::make_shared<std::vector<os::Fd>>(std::move(descriptors)));
          },
          [&](const abi::GiveListener&) { clients_.give_listener(connection); },
          [&](const abi::NextConnection& request) { clients_.next_connection(connection, request); },
          [&](const abi::ReleaseConnection& request) { clients_.release(connection, request); },
          [&](const abi::Ready&) { joins_.ready(connection); },
          [&](const abi::Resumed& request) {
            answers_.give_once(connection, pairs_.resumed(connection, request));
          },
          [&](const abi::Finish&) { answers_.give_once(connection, pairs_.finish(connection)); },
          [](const abi::TurnWanted&) {},
          [&](const abi::Inject& request) { injections_.inject(connection, request); },
          [&](const abi::Injected& report) { injections_.injected(connection, report); },
          [&](const abi::Place& request) {
            const auto placed = place(connection, request);
            if (!placed) return answers_.give(connection, propagate(placed));
            connection.answer(*placed);
          },
          [&](const abi::Adopt& request) {
            const Status room = room_for_user(connection, request.tenant);
            answers_.give(connection, room ? joins_.adopt(connection, request) : room, {request.pid});
          },
          [&](const abi::EndProcess& request) {
            answers_.give(connection, endings_.end_process(connection, request));
          },
          [&](const abi::EndTenant& request) { endings_.end_tenant(connection, request); },
          [&](const abi::Output& output) { note_output(connection, output); },
          [&](const abi::GiveCoreDumpPipe&) { give_core_dump_pipe(connection); },
          [&](const abi::CoreDumpMode& report) {
            parking_.on_mode_by_calls(connection.peer().pid, report.why_not);
            answers_.give(connection, {});
          },
          [&](const abi::StatusRequest&) { report_status(connection); },
          [&](const abi::Subscribe&) {
            answers_.give(connection, teller_.subscribe(connection.id(), connection.asking()));
          },
          [&](const abi::HandOver& request) { answers_.give(connection, joins_.hand_over(request)); },
          [&](const abi::Rest& request) { resting_.ask(connection, request); },
          [&](const abi::Shutdown& request) { shutdown_.ask(connection, request); },
          [&](const abi::GpuRecovered& request) { answers_.give(connection, recover_gpu(request.gpu)); },
          [&](const auto&) { connection.answer(abi::Refused{"that is the agent's to say"}); },
      },
      message);
  if (may_change_turns(message)) turns_.look();
}

/// The log has what was asked for, by whom, and what was refused.
Status Agent::admit(Connection& connection, const abi::Message& request) {
  const std::string tenant(tenant_named_by(request));
  if (auto good = tenant.empty() ? Status{} : abi::check_name(tenant); !good) return good;
  Status may = may_ask(connection.asking(), request, credentials_.owner_of(tenant));
  if (may && !connection.has_its_peer(kernel_)) may = peer_is_gone();
  const std::string_view name = audited_name(request);
  if (may) {
    connection.bind_to(tenant);
    if (!name.empty()) audit(server_, spdlog::level::info, "asked", name, tenant, connection, "");
    return may;
  }
  audit(server_, spdlog::level::warn, "refused", name, tenant, connection, may.error().message);
  return may;
}

/// Notes output only of who started the process: a word there names a culprit. A line that names none is for
/// people, in the log.
void Agent::note_output(const Connection& connection, const abi::Output& output) {
  const auto pid = static_cast<pid_t>(output.pid);
  const Process* now = processes_.living(pid) != nullptr ? processes_.living(pid) : processes_.dying(pid);
  const bool is_its = now == nullptr || now->adopter == connection.id();
  if (is_its && connection.adopted(pid, start_time_of(kernel_, pid))) {
    if (!fault::is_about_exception(output.text) && server_.may_log(connection))
      spdlog::info("notice tenant={} pid={} {}", now == nullptr ? "" : now->tenant(), pid,
                   printable(output.text, longest_notice_bytes));
    return detectors_.note_output(pid, output.text);
  }
  if (server_.may_log(connection))
    spdlog::warn("refused: output of process {} by uid={} pid={}, which has not started it", pid,
                 connection.peer().uid, connection.peer().pid);
}

/// Checks that no user takes the room of all: what a tenant and a placement cost is promised to it.
Status Agent::room_for_user(const Connection& connection, const std::string& tenant) const {
  if (connection.asking().entrance == Entrance::Operators) return {};
  const uid_t user = connection.peer().uid;
  const bool is_new = !credentials_.owner_of(tenant);
  if (!is_new || credentials_.count_of(user) < options_.tenants_of_user_max) return {};
  return fail(ErrorCode::ResourceExhausted,
              fmt::format("user {} has {} tenants already", user, options_.tenants_of_user_max));
}

bool Agent::is_let_in(Connection& connection, const abi::Message& message) {
  const bool is_new = std::holds_alternative<abi::Place>(message) ||
                      std::holds_alternative<abi::Adopt>(message) ||
                      std::holds_alternative<abi::Join>(message);
  if (!is_new || !shutdown_.is_under_way()) return true;
  connection.answer(abi::Refused{"the agent is being shut down"});
  return false;
}

Result<abi::Placed> Agent::place(const Connection& connection, const abi::Place& request) {
  if (auto room = room_for_user(connection, request.tenant); !room) return propagate(room);
  if (connection.asking().entrance == Entrance::Tenants &&
      placements_.count(request.tenant) >= placements_of_tenant_max) {
    return fail(ErrorCode::ResourceExhausted,
                fmt::format("{} processes of tenant '{}' were told where to run, and have not come",
                            placements_of_tenant_max, request.tenant));
  }
  auto placement = placements_.choose(connection.id(), request);
  if (!placement) return propagate(placement);
  if (auto room = budget_.room_for_process_of(request.tenant); !room) return propagate(room);
  const std::string domain = placement->domain;
  const std::string spare_domain = placement->spare_domain;
  auto placed = placements_.put(std::move(*placement), connection.peer().uid, records_.returns_ms());
  if (!placed) return placed;
  for (auto& variable : environment_for(domain, spare_domain, connection))
    placed->environment.push_back(std::move(variable));
  records_.save();  // saved before it is told: whoever is started by it may be adopted by the next agent
  return placed;
}

/// Returns the variables of the core dump mode, and of the spare driver instance; `spare_domain`: empty: it
/// is to have none.
Environment Agent::environment_for(const std::string& domain, const std::string& spare_domain,
                                   const Connection& connection) {
  const uid_t user = connection.peer().uid;
  const std::string dump_path = parking_.new_dump_path(domain, user, connection.id());
  Environment all = dump_path.empty() ? Environment{} : park::mode_environment(dump_path);
  if (!dump_path.empty()) placements_.add_pipes(connection.id(), {dump_path});
  if (spare_domain.empty()) return all;
  SpareEnvironment spare{{domains_.pipe_directory(domain), domains_.pipe_directory(spare_domain)}, {}};
  if (!dump_path.empty())
    spare.dumps = {dump_path, parking_.new_dump_path(spare_domain, user, connection.id())};
  if (!spare.dumps[1].empty()) placements_.add_pipes(connection.id(), {spare.dumps[1]});
  for (auto& variable : spare.variables()) all.push_back(std::move(variable));
  return all;
}

/// Gives a pipe to a process that puts itself into the core dump mode. MPS may have to be asked first whose
/// client it is.
void Agent::give_core_dump_pipe(Connection& connection) {
  const pid_t pid = connection.peer().pid;
  auto pipe = parking_.offer_pipe(pid, connection.peer().uid);
  if (!pipe) {
    if (pipe.error().code == ErrorCode::NotYet) look_for_new_clients();
    return answers_.give(connection, propagate(pipe));
  }
  if (pipe->empty()) return answers_.give(connection, {});
  const auto place = kernel_.open(*pipe, O_PATH | O_NOFOLLOW);
  if (!place) return answers_.give(connection, propagate(place));
  connection.answer(abi::CoreDumpPipe{*pipe}, place->get());
}

/// Looks once for many that ask.
void Agent::look_for_new_clients() {
  if (clock_.now() < next_client_look_) return;
  next_client_look_ = clock_.now() + between_client_looks;
  for (const std::string& domain : domains_.names()) domains_.look_for_clients(domain);
}

/// Whose share of the loop's time it takes.
uid_t Agent::user_of(pid_t pid) const {
  const Process* const process = processes_.living(pid);
  if (process == nullptr) return 0;
  if (!process->stranger) return credentials_.owner_of(process->tenant()).value_or(uid_t{0});
  uid_t user = 0;
  const std::string& number = process->stranger->user;
  std::from_chars(number.data(), number.data() + number.size(), user);
  return user;
}

void Agent::on_exit(pid_t pid) {
  if (const Process* const process = processes_.living(pid); process != nullptr) {
    recent_faults_.note_end(pid, domain_left_by(*process), user_of(pid));
    follower_.on_exit(*process);
  }
  deaths_.on_exit(pid);
  parking_.on_exit(pid);
  resting_.on_exit(pid);
  spares_.on_exit(pid);
  turns_.look();
}

/// Reports in a memory file where the status is longer than a message.
void Agent::report_status(Connection& connection) const {
  const abi::StatusDocument report{status_for(connection.asking())};
  if (abi::encode(report).size() <= abi::wire_bytes_max - number_bytes) return connection.answer(report);
  if (!connection.numbers()) {
    return connection.answer(
        abi::Refused{"the status is too long for this program, which is older than the agent", false});
  }
  const auto file = os::memory_file_with(report.json);
  if (file) return connection.answer(abi::StatusDocument{}, file->get());
  connection.answer(abi::Refused{"the status: " + to_string(file.error()), true});
}

void Agent::on_closed(Connection& connection) {
  teller_.forget(connection.id());
  injections_.on_closed(connection);
  placements_.forget(connection.id());
  weights_keeper_.on_closed(connection);
  parking_.on_closed(connection.id());
  deaths_.on_closed(connection);
  endings_.on_closed(connection);
  records_.save();
}

// --- faults
// ---------------------------------------------------------------------------------------------------

/// Whoever knows a process alone knows the domain in which that one began. One with a spare has said where it
/// works now.
void Agent::on_fault(const fault::Fault& fault) {
  if (!fault.gpu.is_here) return tell_fault(fault);
  std::string domain = domain_meant(fault);
  if (domain == fault.domain) return take_fault(fault);
  fault::Fault placed = fault;
  placed.domain = std::move(domain);
  take_fault(placed);
}

/// A process that the driver names is on the GPU: where nobody has said more, it is where it was told to be.
std::string Agent::domain_by_driver(const fault::Fault& fault, const Process& process) {
  const bool is_as_told = process.whereabouts().known.empty() && process.is_expected_in(process.domain()) &&
                          fault::is_by_driver(fault.source);
  return is_as_told ? process.domain() : process.known_domain();
}

/// Returns where a process with a spare works. An Xid may also name who is no tenant, or none any more: of a
/// client that is killed the line came after its end (H100).
std::string Agent::domain_meant(const fault::Fault& fault) const {
  const Process* process = fault.pid ? processes_.living(*fault.pid) : nullptr;
  if (is_of_spares_owner(fault)) return process == nullptr ? fault.domain : domain_by_driver(fault, *process);
  if (process == nullptr && fault.pid) process = processes_.dying(*fault.pid);
  // MPS's own log says where it was; all others know it of the process.
  const bool is_its_word = process != nullptr && fault.source != fault::FaultSource::MpsLog &&
                           !fault.domain.empty() && !process->is_known_in(fault.domain);
  if (is_its_word) return domain_by_driver(fault, *process);
  if (!fault.pid || !fault.domain.empty()) return fault.domain;
  std::string of_client;
  if (fault.source == fault::FaultSource::Xid) of_client = parking_.domain_of_client(*fault.pid);
  if (fault.source == fault::FaultSource::Xid && of_client.empty())
    of_client = recent_faults_.domain_of_ended(*fault.pid);
  if (of_client.empty() && process != nullptr) of_client = domain_by_driver(fault, *process);
  return gpus_.may_be_in(fault, of_client) ? of_client : std::string();
}

/// One with a spare is a client of two: in the one that is held its old instance is still there.
std::string Agent::domain_left_by(const Process& process) const {
  if (!spares_.has(process.pid())) return process.known_domain();
  for (const std::string& domain : domains_.names()) {
    if (parking_.holds(domain) && process.is_known_in(domain)) return domain;
  }
  return process.known_domain();
}

/// True when it has one that works, in a domain of its own.
bool Agent::has_a_spare(pid_t pid) const {
  const auto spare = spares_.report_of(pid);
  return spare && !spare->spare_domain.empty();
}

/// True when nothing in the fault's words says in which of that process's domains it was.
bool Agent::is_of_spares_owner(const fault::Fault& fault) const {
  const fault::SourceTraits& source = fault::traits_of(fault.source);
  return (source.is_uvm || source.has_process_alone) && fault.pid && spares_.has(*fault.pid);
}

/// Promotions first: a tenant waits for them, and nobody for anything else.
void Agent::take_fault(const fault::Fault& fault) {
  const std::string_view domain = fault.domain;
  const bool is_sure = is_sure_of_domain(fault);
  if (parking_.holds(fault.domain) && !says_of_reset(fault)) {
    parking_.note_fault(fault);
    return tell_fault(fault);
  }
  const bool ends_domain = is_sure && fault.conclusive && fault::ends_group(fault);
  const auto means = is_sure ? pair::event_of(fault) : pair::EventType::DangerSeen;
  if (!domain.empty()) pairs_.happened(FaultSeen{domain, means, ends_domain});
  follow_up(fault, is_sure);
  if (ends_domain && means == pair::EventType::FenceSeen) on_fell(fault.domain);
  tell_fault(fault);
  note_gpu(fault);
}

/// A GPU that is not of use any more gets no tenants, until it is.
void Agent::note_gpu(const fault::Fault& fault) {
  const std::string change = gpus_.note(fault);
  if (!change.empty()) tell_gpu(change);
}

Status Agent::recover_gpu(const std::string& named) {
  const auto change = gpus_.recover(named);
  if (!change) return propagate(change);
  tell_gpu(*change);
  return {};
}

void Agent::tell_gpu(const std::string& text) {
  spdlog::warn("{}", text);
  abi::Event event;
  event.what = abi::EventKind::Gpu;
  event.text = text;
  teller_.tell(std::move(event));
  records_.save_counts();
}

/// Called whether or not it was parked.
void Agent::on_fell(const std::string& domain) {
  tally_.fell(domain);
  parking_.on_fell(domain);
}

void Agent::tell_fault(const fault::Fault& fault) {
  abi::Event event;
  event.at_ns = to_ns(fault.when);
  event.what = abi::EventKind::Fault;
  event.tenant = fault.tenant.value_or("");
  event.domain = fault.domain;
  event.pid = fault.pid.value_or(0);
  event.source = to_string(fault.source);
  event.text = describe(fault);
  teller_.tell(std::move(event));
}

/// Detectors know a tenant by its processes that were placed; whoever these have started is the tenant's,
/// too.
void Agent::on_incident(const fault::Incident& told) {
  fault::Incident incident = told;
  fault::Culprit& culprit = incident.culprit;
  if (culprit.pid && !culprit.tenant) {
    std::string behind = processes_.tenant_behind(*culprit.pid);
    if (!behind.empty()) culprit.tenant = std::move(behind);
  }
  const std::string id = tally_.on_incident(incident);
  if (const auto change = news_.of(incident)) {
    const auto level = *change == watch::Change::Closed ? spdlog::level::info : spdlog::level::warn;
    log_with(level, {{"DOMAIN", incident.domain}, {"FAULT", id}}, watch::text_of(incident, *change, id));
  }
  if (incident.closed) records_.save_counts();
}

/// Tells the account. Whom it touched is not for the culprit's user to see: that stands in the list alone.
void Agent::on_counted(const PastFault& fault) {
  abi::Event event;
  event.at_ns = fault.at_ns;
  event.what = abi::EventKind::Incident;
  event.tenant = tenants_.contains(fault.culprit) ? fault.culprit : "";
  event.domain = fault.domain;
  event.fault = fault.id;
  event.text =
      fmt::format("fault {} at {}: {}, {}: {}; {}", fault.id, fault.at, fault.fault_class, fault.what,
                  fault.outcome, fault.culprit.empty() ? "nobody is named" : "culprit " + fault.culprit);
  teller_.tell(std::move(event));
  parking_.settle(fault);
  records_.save_counts();
}

void Agent::follow_up(const fault::Fault& fault, bool is_sure) {
  if (fault.domain.empty()) {
    // The server of a domain's first client may not be known yet: MPS is asked, and the fault waits for that.
    if (recent_faults_.put_off(fault)) domains_.refresh_servers();
    return;
  }
  if (!fault.conclusive) return;
  if (is_of_copy_engine(fault)) recent_faults_.take_memory_fault_back(fault.domain);
  recent_faults_.note(fault.domain, is_sure ? confirmed_by(fault) : RecentFaults::Confirms::Nothing);
  if (!fault::ends_group(fault)) return;
  // MPS knows whether it is the domain that it happened to.
  if (!is_sure) return domains_.look_for_faults();
  domains_.note_fault(fault.domain);
  deaths_.let_go_of(fault.domain);  // the processes that ran there have ended
  spares_.ask_all_to_leave(fault.domain);
}

/// The gap may have hidden a fault's only word. It is no fence; MPS knows what has become of its clients.
void Agent::on_gap(const watch::Gap& gap) {
  abi::Event event;
  event.what = abi::EventKind::Gap;
  event.source = to_string(gap.source);
  event.text = gap.text;
  event.domain = gap.domain;
  if (gap.pid) {
    event.pid = *gap.pid;
    const Process* process = processes_.living(*gap.pid);
    event.tenant = process == nullptr ? "" : process->tenant();
    if (process != nullptr) event.domain = process->known_domain();
  }
  teller_.tell(event);
  if (!gap.danger) return;
  // Of a process that is nobody's client, as far as MPS says, nobody has to suspect anything.
  if (!gap.pid || !event.domain.empty()) pairs_.happened(DangerSeen{event.domain});
  domains_.look_for_faults();
}

/// One that ends while there is no agent takes its clients' contexts along, and those that sleep do not know.
void Agent::on_server(const std::string& domain, pid_t pid) {
  if (!warm_standbys_.add_server(domain, pid)) return;
  records_.save();
  warm_standbys_.let_stand_by_in(domain);
  // Faults that named it before it was known.
  for (fault::Fault& fault : recent_faults_.take_of_server(pid)) {
    if (!gpus_.may_be_in(fault, domain)) continue;
    fault.domain = domain;
    on_fault(fault);
  }
}

/// Its domain's server has started by now, or will.
void Agent::on_gpu_opened(pid_t pid) {
  holder_.look(pid);
  parking_.on_gpu_opened(pid);
  spares_.follow(pid);
  const Process* process = processes_.living(pid);
  if (process != nullptr && process->whereabouts().known.empty()) look_for_new_clients();
  if (process != nullptr && !warm_standbys_.knows_server_of(process->domain())) domains_.refresh_servers();
}

void Agent::tell_of(const Process& process, abi::EventKind what, std::string text) {
  abi::Event event;
  event.what = what;
  event.tenant = process.tenant();
  event.domain = process.domain();
  event.pid = process.pid();
  event.text = std::move(text);
  teller_.tell(std::move(event));
}

/// Notes that a process has moved with its spare driver instance. Whatever it does from now on, it does
/// there.
void Agent::on_moved(pid_t pid, const std::string& domain, const std::string& took) {
  Process* const process = processes_.living(pid);
  if (process == nullptr) return;
  const std::string before = process->domain();
  process->move_to(domain);
  Tenant* const tenant = tenants_.find(process->tenant());
  if (tenant != nullptr && tenant->active.pid == pid) tenant->active.domain = domain;
  records_.save();
  tell_of(*process, abi::EventKind::Moved,
          fmt::format("from domain {} to domain {} ({})", before, domain, took));
}

void Agent::tell_spare(pid_t pid, const SpareReport& now) {
  const Process* const process = processes_.living(pid);
  if (process == nullptr) return;
  detectors_.look_again(pid);  // the look is worth while since each instance has an address space of its own
  const char* const between = now.reason.empty() ? "" : ": ";
  tell_of(*process, abi::EventKind::Spare, fmt::format("{}{}{}", to_string(now.state), between, now.reason));
}

/// An Xid names a client that comes to the driver's mind: often a neighbour of the culprit, and once a
/// process of another domain that was just starting (seen on an H100, driver 580). Whoever were promoted then
/// would meet an active that goes on. It does not mistake the MPS server. And a process with a spare is a
/// client of two domains, and says of itself in which it works: MPS has to confirm that.
bool Agent::is_sure_of_domain(const fault::Fault& fault) {
  if (fault.source == fault::FaultSource::ProcessExit || is_of_spares_owner(fault)) return false;
  if (fault.source != fault::FaultSource::Xid) return true;
  if (fault.pid && domains_.domain_of_server(*fault.pid)) return true;
  return recent_faults_.is_confirmed(fault.domain, fault.fault_class);
}

/// True for the Xid that names a held domain's server once the channels are gone.
bool Agent::says_of_reset(const fault::Fault& fault) {
  return fault.source == fault::FaultSource::Xid && fault.xid == 43 && fault.pid &&
         domains_.domain_of_server(*fault.pid) == fault.domain;
}

/// 20 clients needed up to 7 s to notice by themselves (H100, driver 580: results/h100/server-end.json).
void Agent::on_clients_lost(const std::string& domain) {
  pairs_.happened(ClientsLost{domain});
  on_fell(domain);
  deaths_.let_go_of(domain);
  spares_.ask_all_to_leave(domain);
  warm_standbys_.forget_ended_servers();
  records_.save();
}

void Agent::tell_silence(const std::string& shelf, bool is_silent) {
  abi::Event event;
  event.what = is_silent ? abi::EventKind::ShelfSilent : abi::EventKind::ShelfAnswers;
  event.text = shelf + (is_silent ? " does not say what it keeps of tenants' memory, and is asked again"
                                  : " says again what it keeps of tenants' memory");
  spdlog::warn("{}", event.text);
  teller_.tell(std::move(event));
}

}  // namespace firebreak::agent
