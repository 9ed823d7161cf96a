// SPDX-License-Identifier: Apache-2.0
#include "tests/scale/scale.h"

#include <fmt/format.h>
#include <signal.h>

#include <algorithm>
#include <nlohmann/json.hpp>

#include "ground/os/processes.h"
#include "ground/os/program.h"
#include "softgpu/machine/device_uuid.h"

namespace firebreak::scale {
namespace {

constexpr Milliseconds between_looks{100};
constexpr int status_times = 5;
constexpr Milliseconds idle_time{10'000};
constexpr std::uint32_t own_allocations = 5;  ///< scribble's

std::string tenant_name(std::size_t number) { return fmt::format("tenant-{}", number); }

}  // namespace

Result<Figures> Scale::run() {
  auto stage = stage::Stage::create(*platform_.kernel, clock_);
  if (!stage) return propagate(stage);
  stage_ = std::move(*stage);
  auto tick = stage_->loop().every(between_looks, [] {});
  if (!tick) return propagate(tick);
  tick_ = std::move(*tick);
  figures_.tenants = settings_.tenants;
  figures_.gpus = settings_.gpus;
  const Status played = play();
  const Status ended = end();
  if (!played) return propagate(played);
  if (!ended) return propagate(ended);
  return figures_;
}

Status Scale::play() {
  using Step = Status (Scale::*)();
  for (const Step step :
       {&Scale::start_agent, &Scale::start_tenants, &Scale::look_at_status, &Scale::look_at_idle_agent,
        &Scale::kill_agent, &Scale::raise_fault, &Scale::finish}) {
    if (auto done = (this->*step)(); !done) return done;
  }
  return {};
}

Status Scale::start_agent() {
  const std::string directory = settings_.directory + "/fb";
  std::vector<std::string> command = {"sh",
                                      "-c",
                                      R"(exec "$@" 2>>"$0")",
                                      settings_.directory + "/agent.log",
                                      settings_.programs + "/firebreakd",
                                      "--directory",
                                      directory,
                                      "--supervised"};
  for (std::uint32_t gpu = 0; gpu < settings_.gpus; ++gpu) {
    command.insert(command.end(), {"--gpu", softgpu::uuid_text(gpu)});
  }
  auto supervisor = stage_->enter({"agent", "agent", std::move(command), platform_.environment});
  if (!supervisor) return propagate(supervisor);
  supervisor_ = *supervisor;
  return stage_->wait("the agent's start", settings_.patience, [&] { return status().has_value(); });
}

Status Scale::start_tenants() {
  const Monotonic begin = clock_.now();
  for (std::size_t i = 0; i < settings_.tenants; ++i) {
    Tenant& tenant = tenants_.emplace_back();
    tenant.name = tenant_name(i);
    tenant.output_path = fmt::format("{}/{}", settings_.directory, tenant.name);
    auto pair = stage_->enter(
        {tenant.name,
         "pair",
         {"sh",
          "-c",
          R"(ulimit -Sn "$0"; exec "$@")",
          std::to_string(settings_.descriptors),
          settings_.programs + "/firebreak",
          "run",
          "--socket",
          settings_.directory + "/fb/agent.sock",
          "--name",
          tenant.name,
          "--pair",
          "--",
          settings_.programs + "/firebreak-scribble",
          "--steps",
          std::to_string(settings_.steps),
          "--pace-ms",
          std::to_string(std::max<std::int64_t>(settings_.pace.count(), 10 * settings_.tenants)),
          "--more-memory",
          std::to_string(settings_.more_memory),
          "--start-on-input",
          "--output",
          tenant.output_path},
         platform_.environment});
    if (!pair) return propagate(pair);
    tenant.pair = *pair;
  }
  if (auto all = wait_until_protected("everybody's protection", false); !all) return all;
  figures_.join_ms = ms_since(begin);
  tell_(fmt::format("{} pairs are protected after {:.0f} ms", settings_.tenants, figures_.join_ms));
  return {};
}

Status Scale::look_at_status() {
  for (int i = 0; i < status_times; ++i) {
    const auto json = ask({"status", "--json"});
    const auto text = ask({"status"});
    if (!json) return propagate(json);
    if (!text) return propagate(text);
    figures_.status_ms.push_back(json->lasted_ms);
    figures_.status_bytes = json->text.size();
    const auto parsed = nlohmann::json::parse(json->text, nullptr, false);
    if (!parsed.is_object() || parsed["tenants"].size() != settings_.tenants)
      return fail(ErrorCode::Protocol, "the status does not name every tenant");
    if (text->text.find(tenant_name(settings_.tenants - 1)) == std::string::npos)
      return fail(ErrorCode::Protocol, "the status for people does not name every tenant");
  }
  if (auto all = check_memory(); !all) return all;
  figures_.agent = cost_of(*platform_.kernel, agent());
  figures_.supervisor = cost_of(*platform_.kernel, supervisor_->record().pid);
  for (const pid_t shelf : shelves()) figures_.shelves += cost_of(*platform_.kernel, shelf);
  return {};
}

Status Scale::check_memory() {
  const auto text = status();
  const auto known = nlohmann::json::parse(text.value_or(""), nullptr, false);
  if (!known.is_object()) return fail(ErrorCode::Protocol, "the agent has no status");
  figures_.allocations = 0;
  for (const auto& tenant : known["tenants"])
    figures_.allocations += tenant["allocations"].get<std::uint64_t>();
  const std::uint64_t wanted = std::uint64_t{settings_.tenants} * (settings_.more_memory + own_allocations);
  if (figures_.allocations == wanted) return {};
  return fail(ErrorCode::Protocol,
              fmt::format("the agent knows {} allocations of {}", figures_.allocations, wanted));
}

/// Everybody waits: what it does now it does for ever.
Status Scale::look_at_idle_agent() {
  const std::uint64_t before_ms = cost_of(*platform_.kernel, agent()).cpu_ms;
  const Monotonic begin = clock_.now();
  auto passed =
      stage_->wait("some time", settings_.patience, [&] { return clock_.now() - begin >= idle_time; });
  if (!passed) return passed;
  const double used_ms = static_cast<double>(cost_of(*platform_.kernel, agent()).cpu_ms - before_ms);
  figures_.idle_percent = 100 * used_ms / ms_since(begin);
  tell_(fmt::format("the idle agent takes {:.1f} % of a core", figures_.idle_percent));
  return {};
}

Status Scale::kill_agent() {
  const auto pidfd = platform_.kernel->pidfd_open(agent());
  if (!pidfd) return propagate(pidfd, "the agent");
  const Monotonic begin = clock_.now();
  if (auto sent = platform_.kernel->send_signal(*pidfd, SIGKILL); !sent) return sent;
  if (auto back = wait_until_protected("the next agent", false); !back) return back;
  figures_.restart_ms = ms_since(begin);
  if (auto all = wait_until_protected("everybody's return", true); !all) return all;
  figures_.rejoin_ms = ms_since(begin);
  if (auto all = check_memory(); !all) return all;
  figures_.next_agent = cost_of(*platform_.kernel, agent());
  tell_(fmt::format("the next agent has all after {:.0f} ms, and all are back after {:.0f} ms",
                    figures_.restart_ms, figures_.rejoin_ms));
  return {};
}

Status Scale::note_who_is_hit() {
  const auto text = status();
  const auto known = nlohmann::json::parse(text.value_or(""), nullptr, false);
  if (!known.is_object()) return fail(ErrorCode::Protocol, "the agent has no status");
  for (const auto& each : known["tenants"]) {
    const auto tenant = std::ranges::find(tenants_, each["name"].get<std::string>(), &Tenant::name);
    if (tenant == tenants_.end() || !each["active"].is_object()) continue;
    tenant->is_hit = each["active"]["domain"] == first_domain();
    figures_.hit += tenant->is_hit ? 1 : 0;
  }
  return {};
}

template <class Condition>
bool Scale::holds_for_all_hit(const Condition& condition) const {
  return std::ranges::all_of(tenants_, [&](const Tenant& each) { return !each.is_hit || condition(each); });
}

/// Everybody's work begins, and in the midst of it a domain with actives has a fault.
Status Scale::raise_fault() {
  if (auto subscribed = subscribe(); !subscribed) return subscribed;
  for (const Tenant& tenant : tenants_) tenant.pair->tell("go");
  const auto works = [this] {
    const auto text = status();
    if (!text) return false;
    const auto view = link::parse_status(*text);
    return std::ranges::all_of(view.tenants,
                               [](const auto& each) { return each.second.committed_steps > 2; });
  };
  if (auto begun = stage_->wait("everybody's first steps", settings_.patience, works); !begun) return begun;
  if (auto noted = note_who_is_hit(); !noted) return noted;
  std::vector<std::string> command = {settings_.programs + "/firebreak",      "run",    "--socket",
                                      settings_.directory + "/fb/agent.sock", "--name", "rogue"};
  if (settings_.gpus > 1) command.insert(command.end(), {"--gpu", softgpu::uuid_text(0)});
  command.insert(command.end(), {"--", settings_.programs + "/firebreak-lab", "inject", "misaligned-load"});
  auto rogue = stage_->enter({"rogue", "rogue", std::move(command), platform_.environment});
  if (!rogue) return propagate(rogue);
  const auto resumed = [this] {
    return holds_for_all_hit([](const Tenant& each) { return each.resumed_at_ns != 0; });
  };
  if (auto all = stage_->wait("everybody's takeover", settings_.patience, resumed); !all) return all;
  for (const Tenant& tenant : tenants_) {
    if (!tenant.is_hit) continue;
    figures_.promotion_ms.push_back(static_cast<double>(tenant.promoted_at_ns - fault_at_ns_) / 1e6);
    figures_.first_kernel_ms.push_back(static_cast<double>(tenant.resumed_at_ns - fault_at_ns_) / 1e6);
  }
  tell_(fmt::format("{} taken over: the last promotion after {:.1f} ms, its first kernel after {:.1f} ms",
                    figures_.hit, std::ranges::max(figures_.promotion_ms),
                    std::ranges::max(figures_.first_kernel_ms)));
  const auto settled = [this] {
    return holds_for_all_hit(
        [](const Tenant& each) { return each.protected_at_ns != 0 || each.pair->ended(); });
  };
  if (auto all = stage_->wait("everybody's next standby", settings_.patience, settled); !all) return all;
  for (const Tenant& tenant : tenants_) {
    if (tenant.protected_at_ns == 0) continue;  // it had finished before
    figures_.protected_again_ms.push_back(
        static_cast<double>(tenant.protected_at_ns - tenant.promoted_at_ns) / 1e6);
  }
  return {};
}

Status Scale::finish() {
  const auto all_ended = [this] {
    return std::ranges::all_of(tenants_, [](const Tenant& each) { return each.pair->ended(); });
  };
  if (auto ended = stage_->wait("everybody's end", settings_.patience, all_ended); !ended) return ended;
  for (const Tenant& tenant : tenants_) {
    const stage::ActorRecord& record = tenant.pair->record();
    const auto output = platform_.kernel->read_file(tenant.output_path);
    if (!record.exit->clean() || !output || *output != "no stray write\n") {
      return fail(ErrorCode::Protocol, fmt::format("{} did not end as if nothing had happened: {}",
                                                   tenant.name, record.last_words));
    }
    if (!tenant.is_hit && tenant.promoted_at_ns != 0) {
      return fail(ErrorCode::Protocol,
                  fmt::format("{} was promoted, whose domain had no fault", tenant.name));
    }
  }
  return {};
}

Status Scale::end() {
  for (const Tenant& tenant : tenants_) {
    if (!tenant.pair->ended()) tenant.pair->signal(SIGKILL);
  }
  if (supervisor_ == nullptr || supervisor_->ended()) return {};
  supervisor_->signal(SIGINT);
  auto ended = stage_->wait("the agent's end", settings_.patience, [this] { return supervisor_->ended(); });
  if (!ended) return ended;
  const bool is_clean = supervisor_->record().exit->clean();
  return is_clean ? Status{} : fail(ErrorCode::Internal, "the agent: " + supervisor_->record().last_words);
}

// --- what is asked and heard
// ----------------------------------------------------------------------------------------

Status Scale::wait_until_protected(const std::string& why, bool is_every_process_back) {
  const auto has_ended = [](const Tenant& each) { return each.pair->ended(); };
  const Status waited = stage_->wait(why, settings_.patience, [&] {
    if (std::ranges::any_of(tenants_, has_ended)) return true;
    const auto text = status();
    if (!text) return false;
    const auto all = nlohmann::json::parse(*text, nullptr, false);
    if (!all.is_object()) return false;
    const auto is_back = [&](const nlohmann::json& member) {
      return !is_every_process_back || (member.is_object() && member["joined"] == true);
    };
    return std::ranges::count_if(all["tenants"], [&](const nlohmann::json& tenant) {
             return tenant["phase"] == "serving" && tenant["standby_state"] == "ready" &&
                    is_back(tenant["active"]) && is_back(tenant["standby"]);
           }) == settings_.tenants;
  });
  if (const auto lost = std::ranges::find_if(tenants_, has_ended); lost != tenants_.end()) {
    return fail(ErrorCode::Protocol,
                fmt::format("{} ended: {}", lost->name, lost->pair->record().last_words));
  }
  if (waited) return {};
  const auto text = status();
  const auto view = link::parse_status(text.value_or(""));
  const auto ready = std::ranges::count_if(
      view.tenants, [](const auto& each) { return each.second.standby_state == pair::Standby::Ready; });
  return propagate(waited, fmt::format("of {} tenants the agent knows {}, {} have a ready standby",
                                       settings_.tenants, view.tenants.size(), ready));
}

Status Scale::subscribe() {
  auto link = link::AgentLink::connect(settings_.directory + "/fb/agent.sock");
  if (!link) return propagate(link);
  const Status subscribed = (*link)->subscribe(
      [this](const abi::Event& event) { stage_->loop().post([this, event] { hear(event); }); });
  if (subscribed) events_ = std::move(*link);
  return subscribed;
}

void Scale::hear(const abi::Event& event) {
  if (event.what == abi::EventKind::Fault && fault_at_ns_ == 0) fault_at_ns_ = event.at_ns;
  const auto tenant = std::ranges::find(tenants_, event.tenant, &Tenant::name);
  if (tenant == tenants_.end()) return;
  if (event.what == abi::EventKind::Promote && tenant->promoted_at_ns == 0)
    tenant->promoted_at_ns = event.at_ns;
  if (event.what == abi::EventKind::Protected && tenant->promoted_at_ns != 0 && tenant->protected_at_ns == 0)
    tenant->protected_at_ns = event.at_ns;
  if (event.what == abi::EventKind::Resumed && tenant->resumed_at_ns == 0)
    tenant->resumed_at_ns = event.at_ns;
}

Result<Scale::Asked> Scale::ask(const std::vector<std::string>& arguments) {
  os::SpawnRequest request;
  request.command = {settings_.programs + "/firebreak"};
  request.command.insert(request.command.end(), arguments.begin(), arguments.end());
  request.command.insert(request.command.end(), {"--socket", settings_.directory + "/fb/agent.sock"});
  request.environment = platform_.environment;
  const Monotonic begin = clock_.now();
  const auto ran = os::run_program(*platform_.kernel, request, "", settings_.patience);
  if (!ran) return propagate(ran);
  if (!ran->status.clean()) return fail(ErrorCode::Protocol, "firebreak status: " + ran->output);
  return Asked{ran->output, ms_since(begin)};
}

std::optional<std::string> Scale::status() const {
  const auto link = link::AgentLink::connect(settings_.directory + "/fb/agent.sock");
  if (!link) return std::nullopt;
  auto text = (*link)->status();
  return text ? std::optional(std::move(*text)) : std::nullopt;
}

pid_t Scale::agent() const {
  os::Kernel& kernel = *platform_.kernel;
  for (const pid_t child : os::children_of(kernel, supervisor_->record().pid)) {
    const auto command = kernel.read_file(os::proc_folder(child) + "/cmdline").value_or("");
    if (command.find("--second-supervisor") == std::string::npos) return child;
  }
  return 0;
}

/// By their command line, among the agent's children: before any agent was killed.
std::vector<pid_t> Scale::shelves() const {
  std::vector<pid_t> found;
  for (const pid_t pid : os::children_of(*platform_.kernel, agent())) {
    const auto command = platform_.kernel->read_file(os::proc_folder(pid) + "/cmdline");
    if (command && command->find("--shelf") != std::string::npos) found.push_back(pid);
  }
  return found;
}

double Scale::ms_since(Monotonic begin) const {
  return std::chrono::duration<double, std::milli>(clock_.now() - begin).count();
}

}  // namespace firebreak::scale
