// SPDX-License-Identifier: Apache-2.0
#include "soak/soak.h"

#include <fmt/format.h>
#include <signal.h>
#include <spdlog/spdlog.h>

#include <algorithm>

#include "ground/os/processes.h"

namespace firebreak::soak {
namespace {

constexpr Milliseconds between_looks{20};
/// Waits as an operator's supervisor would.
constexpr Milliseconds before_restart{500};
/// Time after a fault until everybody whom it hits is known to be hit.
constexpr Milliseconds fault_spreads{400};
/// Longer than any step takes until its commit.
constexpr Milliseconds injection_patience{10'000};
/// Shown with a violation.
constexpr std::size_t disturbances_shown = 5;

std::string describe_edges(const Disturbance& disturbance) {
  std::string text;
  if (disturbance.breaks_active) text += ", the active's";
  if (disturbance.breaks_standby) text += ", the standby's";
  if (disturbance.tight_starts > 0)
    text += fmt::format(", {} starts with {} descriptors", disturbance.tight_starts,
                        disturbance.tight_descriptors);
  if (disturbance.crowd > 0) text += fmt::format(", {} more tenants", disturbance.crowd);
  if (disturbance.stall > Milliseconds(0))
    text += fmt::format(", the agent stands still for {} ms", disturbance.stall.count());
  return text;
}

std::string describe(const Disturbance& disturbance, std::uint32_t number, const std::string& tenant) {
  return fmt::format("fault {}: {} of {}{}{}{}{}{}{}", number, to_string(disturbance.target), tenant,
                     disturbance.kind.empty() ? "" : ", ", disturbance.kind,
                     disturbance.is_guarded ? ", guarded" : "", describe_edges(disturbance),
                     disturbance.agent == AgentKill::None ? "" : ", the agent too",
                     disturbance.waits ? "" : ", at once");
}

}  // namespace

Result<Record> Soak::run() {
  const Monotonic began = clock_.now();
  auto stage = stage::Stage::create(*platform_.kernel, clock_);
  if (!stage) return propagate(stage);
  stage_ = std::move(*stage);
  auto tick = stage_->loop().every(between_looks, [] {});
  if (!tick) return propagate(tick);
  tick_ = std::move(*tick);
  if (auto computed = compute_references(); !computed) return propagate(computed);
  auto supervised = SupervisedAgent::raise(*stage_, *platform_.kernel, settings_, environment());
  if (!supervised) return propagate(supervised);
  agent_ = std::move(*supervised);
  record_.before = count_resources(*platform_.kernel, agent_->supervisor(), agent_->agent());
  const Status played = play();
  // The MPS domains are the agent's to end, also where this failed.
  const Status closed = played ? close() : agent_->end(settings_.patience);
  if (!played) return propagate(played);
  if (!closed) return propagate(closed);
  record_.lasted_s = std::chrono::duration<double>(clock_.now() - began).count();
  return record_;
}

Status Soak::compute_references() {
  std::vector<stage::Actor*> programs;
  for (const std::string& workload : settings_.workloads) {
    auto command =
        workload_command(workload, fmt::format("{}/{}", settings_.directory, workload), settings_.steps);
    command.push_back("--standalone");
    auto program = stage_->enter({workload, "reference", std::move(command), environment()});
    if (!program) return propagate(program);
    programs.push_back(*program);
  }
  const Status ended = stage_->wait("the references", settings_.patience, [&] {
    return std::ranges::all_of(programs, [](const stage::Actor* each) { return each->ended(); });
  });
  if (!ended) return ended;
  for (const std::string& workload : settings_.workloads) {
    auto output = platform_.kernel->read_file(fmt::format("{}/{}", settings_.directory, workload));
    if (!output) return propagate(output, "the reference of " + workload);
    references_[workload] = std::move(*output);
  }
  return {};
}

Status Soak::play() {
  Plan plan({settings_.seed, settings_.faults, settings_.agent_kills, settings_.kinds, settings_.targets,
             settings_.edges});
  faults_left_ = settings_.faults;
  const Monotonic until =
      settings_.limit > Milliseconds(0) ? clock_.now() + settings_.limit : Monotonic::max();
  while (const auto disturbance = clock_.now() < until ? plan.next() : std::nullopt) {
    if (disturbance->waits) {
      // A tenant that was hit last looks healthy for a while yet, once the fault was raised at all.
      if (auto raised = wait_for_culprits(); !raised) return raised;
      if (auto spread = pause(fault_spreads); !spread) return spread;
      if (auto settled = settle(); !settled) {
        if (settled.error().code == ErrorCode::Timeout) tell_who_is_unprotected();
        return settled;
      }
      for (const auto& tenant : tenants_) tenant->may_be_lost = false;
    }
    if (auto dealt = deal(*disturbance); !dealt)
      return propagate(dealt, fmt::format("fault {}", record_.faults));
    if (record_.faults % 100 == 0) {
      tell_(fmt::format("{} faults, {} tenants finished, {} violations", record_.faults, record_.tenants,
                        record_.violations.size()));
    }
  }
  faults_left_ = 0;
  return stage_->wait("the tenants' end", settings_.patience * 10, [&] {
    look();
    return running().empty() && visitors_.empty() && tenants_.size() >= settings_.tenants;
  });
}

/// Everybody is gone: what is left, once the agent has done with what it still had to tell?
Status Soak::close() {
  std::vector<std::string> left;
  const Status gone = stage_->wait("the agent's forgetting", settings_.patience, [&] {
    look();
    if (!status_) return false;
    record_.after = count_resources(*platform_.kernel, agent_->supervisor(), agent_->agent());
    record_.after.tenants = status_->tenants.size();
    left = leaks(record_.before, record_.after);
    return left.empty();
  });
  if (!gone) {
    for (const std::string& line : left) violate("leak: " + line);
  }
  if (auto ended = agent_->end(settings_.patience); !ended) return ended;
  const Status ended = stage_->wait("the end of all processes", settings_.patience,
                                    [this] { return processes_with(*platform_.kernel, mark()).empty(); });
  if (!ended) violate("leak: " + to_string(ended.error()));
  return {};
}

// --- disturbances
// --------------------------------------------------------------------------------------------------------

Status Soak::deal(const Disturbance& disturbance) {
  if (auto paused = pause(disturbance.after); !paused) return paused;
  const auto tenants = running();
  if (tenants.empty()) return {};
  Tenant& tenant = *tenants[disturbance.tenant % tenants.size()];
  if (disturbance.target == Target::Both || disturbance.target == Target::Starts) tenant.may_be_lost = true;
  if (!disturbance.waits) {
    for (Tenant* each : tenants) each->may_be_lost = true;
  }
  disturbances_.push_back(describe(disturbance, record_.faults, tenant.name));
  spdlog::info("{}", disturbances_.back());
  if (disturbance.stall > Milliseconds(0) && agent_->stall_agent(disturbance.stall)) ++record_.stalls;
  if (disturbance.agent == AgentKill::Before) kill_agent();
  const Status fallen =
      disturbance.kind.empty() ? fall(disturbance, tenant) : raise_fault(disturbance, tenant);
  if (!fallen) return fallen;
  if (disturbance.agent == AgentKill::After) kill_agent();
  ++record_.faults;
  --faults_left_;
  ++record_.faults_by_target[to_string(disturbance.target)];
  if (!disturbance.kind.empty()) ++record_.faults_by_kind[disturbance.kind];
  return {};
}

Status Soak::fall(const Disturbance& disturbance, Tenant& tenant) {
  if (disturbance.target == Target::Crowd) return crowd(disturbance);
  if (!tenant.view || !status_) return {};
  if (disturbance.target == Target::Server) {
    for (const pid_t server : status_->servers[tenant.view->active_domain]) kill(server);
    return {};
  }
  if (disturbance.target == Target::Link) {
    break_links(disturbance, tenant);
    return {};
  }
  if (disturbance.target == Target::Starts) starve(disturbance, tenant);
  if (disturbance.target != Target::Standby) kill(tenant.view->active);
  if (disturbance.target != Target::Active) kill(tenant.view->standby);
  return {};
}

/// None but a process of this soak, whatever became of its number.
void Soak::kill(pid_t pid) {
  if (pid == 0) return;
  const auto pidfd = platform_.kernel->pidfd_open(pid);
  if (!pidfd || !is_ours(*platform_.kernel, pid, mark())) return;
  static_cast<void>(platform_.kernel->send_signal(*pidfd, SIGKILL));
}

Status Soak::raise_fault(const Disturbance& disturbance, Tenant& tenant) {
  const std::string lab = settings_.programs + "/firebreak-lab";
  std::vector<std::string> command;
  if (disturbance.target == Target::Inside) {
    command = {lab, "inject", disturbance.kind, "--into", tenant.name, "--socket", agent_->socket_path()};
    if (tenant.view) tenant.doomed = tenant.view->active;
  } else {
    const std::string name = fmt::format("rogue-{}", record_.faults);
    command = {settings_.programs + "/firebreak", "run", "--socket", agent_->socket_path(), "--name", name};
    command.emplace_back(disturbance.is_guarded ? "--guard" : "--without=guard,spare");
    command.insert(command.end(), {"--", lab, "inject", disturbance.kind});
  }
  auto culprit =
      stage_->enter({disturbance.kind, to_string(disturbance.target), std::move(command), environment()});
  if (!culprit) return propagate(culprit);
  culprits_.push_back(*culprit);
  return {};
}

void Soak::kill_agent() {
  if (agent_->kill_agent()) ++record_.agent_kills;
}

// --- waiting
// ------------------------------------------------------------------------------------------------------

/// A tenant that is to raise a fault at its next commit serves until then, and its standby must outlive it.
/// An injection may come to nothing: nobody waits for it after a while.
Status Soak::wait_for_culprits() {
  const Monotonic until = clock_.now() + injection_patience;
  const Status ended = stage_->wait("the end of who raises faults", settings_.patience, [&] {
    look();
    const bool is_over = clock_.now() >= until || std::ranges::none_of(tenants_, [this](const auto& tenant) {
                           return is_awaited(*tenant);
                         });
    return is_over && culprits_.empty() && visitors_.empty();
  });
  for (const auto& tenant : tenants_) tenant->doomed = 0;
  return ended;
}

bool Soak::is_awaited(const Tenant& tenant) const {
  if (tenant.doomed == 0 || tenant.is_done || tenant.pair->ended()) return false;
  if (!tenant.view) return !status_;
  return tenant.view->phase == pair::Phase::Serving && tenant.view->active == tenant.doomed;
}

Status Soak::settle() {
  return stage_->wait("everybody's protection", settings_.patience, [this] {
    look();
    return is_protected();
  });
}

Status Soak::pause(Milliseconds time) {
  const Monotonic until = clock_.now() + time;
  return stage_->wait("a pause", time + settings_.patience, [&] {
    look();
    return clock_.now() >= until;
  });
}

void Soak::look() {
  status_ = agent_->status();
  for (const auto& tenant : tenants_) {
    tenant->view = status_ ? status_->tenant(tenant->name) : std::nullopt;
    if (tenant->view) tenant->epoch = std::max(tenant->epoch, tenant->view->epoch);
  }
  if (status_ && !agent_->listens()) {
    agent_->listen([this](const abi::Event& event) { hear(event); });
  }
  std::erase_if(culprits_, [](const stage::Actor* culprit) { return culprit->ended(); });
  take_note_of_visitors();
  if (!status_) return;
  if (auto noted = take_note_of_ends(); !noted) violate(to_string(noted.error()));
  if (auto filled = fill(); !filled) violate(to_string(filled.error()));
}

/// The disturbance was over long ago.
void Soak::tell_who_is_unprotected() {
  if (!status_) return violate("there is no agent any more");
  for (const Tenant* tenant : running()) {
    const auto& view = tenant->view;
    const bool is_whole =
        view && view->phase == pair::Phase::Serving && view->standby_state == pair::Standby::Ready;
    if (is_whole && !tenant->pair->ended()) continue;
    violate(fmt::format("{} is not protected again: {}, active {}, standby {} ({})", tenant->name,
                        view && view->phase ? to_string(*view->phase) : "unknown", view ? view->active : 0,
                        view ? view->standby : 0,
                        view && view->standby_state ? to_string(*view->standby_state) : ""));
  }
  if (!visitors_.empty()) violate(visitors_.front().name + " does not end");
}

bool Soak::is_protected() const {
  if (!status_ || !culprits_.empty() || !visitors_.empty()) return false;
  return std::ranges::all_of(tenants_, [](const auto& tenant) {
    return tenant->is_done || (tenant->view && tenant->view->phase == pair::Phase::Serving &&
                               tenant->view->standby_state == pair::Standby::Ready && !tenant->pair->ended());
  });
}

// --- tenants
// ------------------------------------------------------------------------------------------------------

Status Soak::fill() {
  while (running().size() < settings_.at_once && (tenants_.size() < settings_.tenants || faults_left_ > 0)) {
    auto tenant = std::make_unique<Tenant>();
    tenant->name = fmt::format("tenant-{}", tenants_.size());
    tenant->workload = settings_.workloads[tenants_.size() % settings_.workloads.size()];
    tenant->output_path = fmt::format("{}/{}", settings_.directory, tenant->name);
    tenants_.push_back(std::move(tenant));
    if (auto started = start(*tenants_.back()); !started) return started;
  }
  return {};
}

Status Soak::start(Tenant& tenant) {
  auto command =
      pair_command(tenant.name, tenant.workload, tenant.output_path, tenant.tight_start, settings_.steps);
  auto environment = this->environment();
  environment.emplace_back("FIREBREAK_ALLOW_INJECTION", "1");
  auto pair = stage_->enter({tenant.name, "pair", std::move(command), std::move(environment)},
                            [&ledger = tenant.ledger](const std::string& line) {
                              if (const auto mark = stage::parse_step_mark(line)) ledger.hear(*mark);
                            });
  if (!pair) return propagate(pair);
  tenant.pair = *pair;
  return {};
}

std::vector<std::string> Soak::pair_command(const std::string& name, const std::string& workload,
                                            const std::string& output, const std::string& tight_start,
                                            std::uint64_t steps) const {
  std::vector<std::string> command = {settings_.programs + "/firebreak",
                                      "run",
                                      "--socket",
                                      agent_->socket_path(),
                                      "--name",
                                      name,
                                      "--pair",
                                      "--"};
  if (!tight_start.empty()) command.insert(command.end(), {"sh", "-c", tight_start, "sh"});
  std::ranges::move(workload_command(workload, output, steps), std::back_inserter(command));
  command.insert(command.end(), {"--pace-ms", std::to_string(settings_.pace.count()), "--progress"});
  std::ranges::move(edge_arguments(std::hash<std::string>{}(name)), std::back_inserter(command));
  return command;
}

Status Soak::take_note_of_ends() {
  for (Tenant* tenant : running()) {
    if (!tenant->pair->ended()) continue;
    const stage::ActorRecord& end = tenant->pair->record();
    // A tenant writes its output whole and as its last act: one that is killed after that has finished.
    const auto output = platform_.kernel->read_file(tenant->output_path);
    if (end.exit->clean() || output) {
      judge(*tenant, output);
      continue;
    }
    const bool finds_no_place = end.last_words.find("no MPS domain takes the tenant") != std::string::npos;
    if (tenant->restart_at == Monotonic{}) {
      if (!tenant->tight_start.empty()) ++record_.failed_starts;
      if (settings_.edges && end.last_words.empty()) violate(tenant->name + " ended without a word");
      if (!tenant->may_be_lost && !finds_no_place) {
        violate(fmt::format("{} ended after fault {}: {}", tenant->name, record_.faults, end.last_words));
      }
      if (!finds_no_place) ++record_.losses;
      tenant->restart_at = clock_.now() + before_restart;
    }
    if (clock_.now() < tenant->restart_at) continue;
    tenant->restart_at = {};
    if (auto started = start(*tenant); !started) return started;
  }
  return {};
}

/// Judges a tenant that has finished: its output is as if nothing had happened.
void Soak::judge(Tenant& tenant, const Result<std::string>& output) {
  tenant.is_done = true;
  ++record_.tenants;
  record_.epochs += tenant.epoch;
  record_.steps += tenant.ledger.steps_told();
  const double pause_ms = static_cast<double>(tenant.ledger.longest_pause_ns()) / 1e6;
  record_.longest_pause_ms = std::max(record_.longest_pause_ms, pause_ms);
  if (!output || *output != references_.at(tenant.workload)) {
    violate(
        fmt::format("{} ({}): its output is not that of a run without faults", tenant.name, tenant.workload));
  }
  if (const auto& lost = tenant.ledger.repeated(); !lost.empty()) {
    violate(fmt::format("{} ({}): {} committed steps were lost, the first is {}", tenant.name,
                        tenant.workload, lost.size(), lost.front()));
  }
}

void Soak::violate(std::string line) {
  tell_("violated: " + line);
  record_.violations.push_back(std::move(line));
  show_what_led_to_it();
}

/// Shows it once for all that the same disturbance has done.
void Soak::show_what_led_to_it() {
  if (shown_after_ == record_.faults) return;
  shown_after_ = record_.faults;
  const auto first =
      disturbances_.end() - static_cast<std::ptrdiff_t>(std::min(disturbances_.size(), disturbances_shown));
  tell_(
      fmt::format("{}\n{}", fmt::join(first, disturbances_.end(), "\n"), agent_ ? agent_->last_words() : ""));
}

std::vector<Soak::Tenant*> Soak::running() {
  std::vector<Tenant*> all;
  for (const auto& tenant : tenants_) {
    if (!tenant->is_done) all.push_back(tenant.get());
  }
  return all;
}

std::vector<std::string> Soak::workload_command(const std::string& workload, const std::string& output,
                                                std::uint64_t steps) const {
  return {settings_.programs + "/firebreak-" + workload,
          "--size",
          settings_.size,
          "--steps",
          std::to_string(steps),
          "--output",
          output};
}

Environment Soak::environment() const {
  Environment all = platform_.environment;
  all.emplace_back("FIREBREAK_SOAK", settings_.directory);
  return all;
}

}  // namespace firebreak::soak
