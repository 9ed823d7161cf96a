// SPDX-License-Identifier: Apache-2.0
#include "tests/flood/flood.h"

#include <fmt/format.h>
#include <signal.h>

#include <algorithm>
#include <charconv>
#include <numeric>
#include <sstream>
#include <utility>

#include "ground/os/processes.h"
#include "ground/os/program.h"
#include "shared/link/agent_link.h"
#include "softgpu/machine/device_uuid.h"
#include "tests/scale/process_cost.h"

namespace firebreak::flood {
namespace {

constexpr Milliseconds between_looks{50};
constexpr Milliseconds until_it_floods{500};
/// Nobody special: no names in the machine's lists are needed.
constexpr unsigned int users_group = 65'500;
constexpr unsigned int working_user = 65'501;
constexpr unsigned int flooding_user = 65'502;

std::optional<std::int64_t> number_behind(const std::string& word, const std::string& line) {
  if (!line.starts_with(word)) return std::nullopt;
  std::int64_t number = 0;
  const auto read = std::from_chars(line.data() + word.size(), line.data() + line.size(), number);
  return read.ec == std::errc() ? std::optional(number) : std::nullopt;
}

double mean_of(const std::vector<double>& values) {
  if (values.empty()) return 0;
  return std::accumulate(values.begin(), values.end(), 0.0) / static_cast<double>(values.size());
}

/// These came in between in that time.
std::vector<double> distances_ms(const std::vector<std::int64_t>& at_ns, std::int64_t begin_ns,
                                 std::int64_t end_ns) {
  std::vector<double> all;
  for (std::size_t i = 1; i < at_ns.size(); ++i) {
    if (at_ns[i - 1] < begin_ns || at_ns[i] > end_ns) continue;
    all.push_back(static_cast<double>(at_ns[i] - at_ns[i - 1]) / 1e6);
  }
  return all;
}

}  // namespace

const char* to_string(Beside beside) {
  switch (beside) {
    case Beside::Nobody:
      return "nobody";
    case Beside::Flood:
      return "flood";
    case Beside::Computing:
      return "computing";
  }
  return "";
}

Result<Figures> Flood::run() {
  auto stage = stage::Stage::create(*platform_.kernel, clock_);
  if (!stage) return propagate(stage);
  stage_ = std::move(*stage);
  auto tick = stage_->loop().every(between_looks, [] {});
  if (!tick) return propagate(tick);
  tick_ = std::move(*tick);
  const Status played = play();
  const Status ended = end();
  if (!played) return propagate(played, "the agent's last words: " + last_words());
  if (!ended) return propagate(ended);
  return figures_;
}

Status Flood::play() {
  using Step = Status (Flood::*)();
  for (const Step step : {&Flood::prepare, &Flood::start_agent, &Flood::start_pairs, &Flood::time_steps,
                          &Flood::raise_faults, &Flood::hang_agent, &Flood::finish}) {
    if (auto done = (this->*step)(); !done) return done;
  }
  return {};
}

/// The GPUs are everybody's.
Status Flood::prepare() {
  const std::string gpu = settings_.directory + "/gpu";
  if (auto through = os::let_through(settings_.directory); !through) return through;
  if (auto made = os::make_directories(gpu); !made) return made;
  if (auto through = os::let_through(gpu); !through) return through;
  auto opened = softgpu::SharedGpu::open(gpu);
  if (!opened) return propagate(opened);
  gpu_ = std::move(*opened);
  return {};
}

Status Flood::start_agent() {
  auto supervisor =
      stage_->enter({"agent",
                     "agent",
                     {"sh", "-c", R"(exec "$@" 2>>"$0")", settings_.directory + "/agent.log",
                      settings_.programs + "/firebreakd", "--directory", settings_.directory + "/fb",
                      "--supervised", "--tenant-group", std::to_string(users_group), "--gpu",
                      softgpu::uuid_text(0), "--gpu", softgpu::uuid_text(1)},
                     platform_.environment});
  if (!supervisor) return propagate(supervisor);
  supervisor_ = *supervisor;
  if (auto begun = wait("the agent's start", [&] { return status().has_value(); }); !begun) return begun;
  known_agent_ = agent();
  return {};
}

/// The first one goes as fast as it can, and its steps are timed; it is in it that faults are raised.
std::vector<std::string> Flood::pair_command(std::size_t number) const {
  return {settings_.programs + "/firebreak",
          "run",
          "--socket",
          tenants_socket(),
          "--name",
          tenants_[number]->name,
          "--gpu",
          softgpu::uuid_text(0),
          "--pair",
          "--",
          settings_.programs + "/firebreak-decode",
          "--steps",
          "1000000",
          "--progress",
          "--pace-ms",
          number == 0 ? "0" : "20"};
}

Status Flood::start_pairs() {
  for (std::uint32_t i = 0; i < settings_.pairs; ++i) {
    Tenant& tenant = *tenants_.emplace_back(std::make_unique<Tenant>());
    tenant.name = fmt::format("pair-{}", i);
    auto pair = enter_as(working_user, tenant.name, pair_command(i),
                         [this, &tenant](const std::string& line) { hear(tenant, line); });
    if (!pair) return propagate(pair);
    tenant.pair = *pair;
  }
  return wait_until_protected("everybody's protection");
}

Result<stage::Actor*> Flood::enter_as(unsigned int user, const std::string& name,
                                      std::vector<std::string> command, stage::Actor::OnLine on_line) {
  std::vector<std::string> whole = {"setpriv",
                                    fmt::format("--reuid={}", user),
                                    fmt::format("--regid={}", users_group),
                                    "--clear-groups",
                                    "--pdeathsig=KILL",
                                    "--"};
  std::ranges::move(command, std::back_inserter(whole));
  auto environment = platform_.environment;
  environment.emplace_back("FIREBREAK_ALLOW_INJECTION", "1");
  return stage_->enter({name, std::to_string(user), std::move(whole), std::move(environment)},
                       std::move(on_line));
}

void Flood::hear(Tenant& tenant, const std::string& line) {
  if (const auto mark = stage::parse_step_mark(line)) {
    tenant.steps.hear(*mark);
    tenant.step_at_ns.push_back(mark->at_ns);
  }
  if (const auto at = number_behind("promoted ", line)) tenant.promoted_at_ns.push_back(*at);
  if (const auto at = number_behind("resumed ", line)) tenant.resumed_at_ns.push_back(*at);
}

// --- what is beside them
// ---------------------------------------------------------------------------------------------------------

Status Flood::begin(Beside beside) {
  beside_ = nullptr;
  has_begun_ = beside == Beside::Nobody;
  beside_since_ = clock_.now();
  if (beside == Beside::Nobody) return {};
  std::vector<std::string> command = {settings_.programs + "/firebreak_flooder"};
  if (beside == Beside::Computing) {
    command.insert(command.end(), {"--burn", fmt::format("{:.3f}", flood_cores_)});
  } else {
    command.insert(command.end(), {"--socket", tenants_socket(), "--programs", settings_.programs, "--gpu",
                                   softgpu::uuid_text(1), "--victim", tenants_.front()->name});
  }
  auto entered =
      enter_as(flooding_user, to_string(beside), std::move(command), [this, beside](const std::string& line) {
        has_begun_ = true;
        const auto done = nlohmann::json::parse(line, nullptr, false);
        if (beside != Beside::Flood || !done.is_object()) return;
        for (const auto& [name, count] : done.items()) figures_.flood[name] += count.get<double>();
        flood_cores_ = done["cpu_s"].get<double>() * 1e3 / ms_since(beside_since_);
      });
  if (!entered) return propagate(entered);
  beside_ = *entered;
  return wait("who is to be beside them", [this] { return has_begun_; });
}

Status Flood::end_beside() {
  if (beside_ == nullptr) return {};
  if (beside_->record().name == to_string(Beside::Flood)) figures_.flood_lasted_ms += ms_since(beside_since_);
  beside_->close_input();
  if (auto ended = wait("its end", [this] { return beside_->ended(); }); !ended) return ended;
  // Its watchdog ended it, where others kept the machine from it: this is told, and is no failure, since
  // nothing is lost.
  const pid_t before = std::exchange(known_agent_, agent());
  if (known_agent_ != before) ++figures_.agents_replaced_unasked;
  return {};
}

// --- steps
// -----------------------------------------------------------------------------------------------------------------

/// The parts take turns: what else this machine does meanwhile is beside all of them.
Status Flood::time_steps() {
  for (std::uint32_t round = 0; round < settings_.rounds; ++round) {
    for (const Beside beside : {Beside::Nobody, Beside::Flood, Beside::Computing}) {
      if (auto timed = time_steps_beside(beside); !timed) return propagate(timed, to_string(beside));
    }
    tell_(fmt::format(
        "round {}: steps of {:.2f} ms beside nobody, {:.2f} beside the flood, {:.2f} beside {:.2f} "
        "cores of computing",
        round, figures_.beside[Beside::Nobody].step_ms_means.back(),
        figures_.beside[Beside::Flood].step_ms_means.back(),
        figures_.beside[Beside::Computing].step_ms_means.back(), flood_cores_));
  }
  return {};
}

Status Flood::time_steps_beside(Beside beside) {
  Seen& seen = figures_.beside[beside];
  if (auto begun = begin(beside); !begun) return begun;
  if (auto waited = pause(until_it_floods); !waited) return waited;
  const Monotonic since = clock_.now();
  const double cpu_before_ms = agent_cpu_ms();
  if (auto waited = pause(settings_.lasts); !waited) return waited;
  const std::int64_t end_ns = to_ns(clock_.now());
  seen.agent_cpu_ms += agent_cpu_ms() - cpu_before_ms;
  seen.lasted_ms += ms_since(since);
  const auto steps = distances_ms(tenants_.front()->step_at_ns, to_ns(since), end_ns);
  if (steps.empty()) return fail(ErrorCode::Protocol, "no step was done");
  seen.step_ms.insert(seen.step_ms.end(), steps.begin(), steps.end());
  seen.step_ms_means.push_back(mean_of(steps));
  return end_beside();
}

Status Flood::pause(Milliseconds time) {
  return stage_->wait("some time", time + settings_.patience,
                      [this, until = clock_.now() + time] { return clock_.now() >= until; });
}

// --- faults
// ----------------------------------------------------------------------------------------------------------------

Status Flood::raise_faults() {
  for (const Beside beside : {Beside::Nobody, Beside::Flood}) {
    if (auto raised = raise_faults_beside(beside); !raised) return propagate(raised, to_string(beside));
  }
  return {};
}

Status Flood::raise_faults_beside(Beside beside) {
  Seen& seen = figures_.beside[beside];
  if (auto begun = begin(beside); !begun) return begun;
  for (std::uint32_t i = 0; i < settings_.faults; ++i) {
    if (auto raised = raise_fault(seen); !raised) return propagate(raised, fmt::format("fault {}", i));
  }
  if (!seen.promotion_ms.empty())
    tell_(fmt::format("{} faults beside {}: the last promotion after {:.3f} ms", settings_.faults,
                      to_string(beside), std::ranges::max(seen.promotion_ms)));
  return end_beside();
}

/// All pairs have their actives in one domain, and all are promoted.
Status Flood::raise_fault(Seen& seen) {
  if (auto whole = wait_until_protected("everybody's protection"); !whole) return whole;
  const std::string domain = view_.tenants[tenants_.front()->name].active_domain;
  const auto servers = view_.servers[domain];
  std::vector<std::size_t> before;
  for (const auto& tenant : tenants_) {
    before.push_back(tenant->resumed_at_ns.size());
    if (view_.tenants[tenant->name].active_domain != domain)
      return fail(ErrorCode::Protocol, tenant->name + " is not where the others are");
  }
  auto culprit = enter_as(working_user, "fault",
                          {settings_.programs + "/firebreak-lab", "inject", "misaligned-load", "--into",
                           tenants_.front()->name, "--socket", tenants_socket()},
                          [](const std::string&) {});
  if (!culprit) return propagate(culprit);
  const Status resumed = wait("everybody's takeover", [&] {
    read_log();
    for (std::size_t i = 0; i < tenants_.size(); ++i)
      if (tenants_[i]->resumed_at_ns.size() == before[i]) return false;
    return (*culprit)->ended();
  });
  if (!resumed) return propagate(resumed, (*culprit)->record().last_words);
  for (const auto& tenant : tenants_) {
    const std::int64_t promoted_ns = tenant->promoted_at_ns.back();
    std::int64_t word_ns = 0;
    for (const pid_t server : servers) word_ns = std::max(word_ns, word_on_server(server, promoted_ns));
    if (word_ns == 0)
      return fail(ErrorCode::Protocol, "the kernel's log has no word on that domain's server");
    seen.promotion_ms.push_back(static_cast<double>(promoted_ns - word_ns) / 1e6);
    seen.first_kernel_ms.push_back(static_cast<double>(tenant->resumed_at_ns.back() - word_ns) / 1e6);
  }
  return {};
}

void Flood::read_log() {
  const softgpu::KmsgRing& ring = gpu_->kmsg();
  for (next_line_ = std::max(next_line_, ring.oldest_sequence()); next_line_ < ring.next_sequence();
       ++next_line_) {
    if (auto line = ring.read(next_line_)) log_.push_back({line->due_ns, std::move(line->text)});
  }
}

std::int64_t Flood::word_on_server(pid_t server, std::int64_t before_ns) const {
  const std::string word = fmt::format("pid={},", server);
  std::int64_t last_ns = 0;
  for (const LogLine& line : log_) {
    if (line.at_ns <= before_ns && line.text.find(word) != std::string::npos)
      last_ns = std::max(last_ns, line.at_ns);
  }
  return last_ns;
}

// --- an agent that hangs
// ----------------------------------------------------------------------------------------------------------------

Status Flood::hang_agent() {
  for (const Beside beside : {Beside::Nobody, Beside::Flood}) {
    if (auto hung = hang_agent_beside(beside); !hung) return propagate(hung, to_string(beside));
  }
  return {};
}

Status Flood::hang_agent_beside(Beside beside) {
  Seen& seen = figures_.beside[beside];
  if (auto begun = begin(beside); !begun) return begun;
  for (std::uint32_t i = 0; i < settings_.hangs; ++i) {
    if (auto lived = pause(settings_.between_hangs); !lived) return lived;
    if (auto whole = wait_until_protected("everybody's protection"); !whole) return whole;
    std::vector<std::size_t> before;
    for (const auto& tenant : tenants_) before.push_back(tenant->promoted_at_ns.size());
    const pid_t hung = std::exchange(known_agent_, 0);
    const auto process = platform_.kernel->pidfd_open(hung);
    if (!process) return propagate(process, "the agent");
    const Monotonic since = clock_.now();
    if (auto sent = platform_.kernel->send_signal(*process, SIGSTOP); !sent) return sent;
    const Status next = wait("the next agent", [&] { return agent() != hung && is_protected(); });
    if (!next) return next;
    seen.replaced_ms.push_back(ms_since(since));
    known_agent_ = agent();
    for (std::size_t t = 0; t < tenants_.size(); ++t) {
      if (tenants_[t]->promoted_at_ns.size() != before[t])
        return fail(ErrorCode::Protocol, tenants_[t]->name + " was promoted when the agent hung");
    }
  }
  if (!seen.replaced_ms.empty())
    tell_(fmt::format("{} agents that hung beside {}: the last was replaced after {:.0f} ms", settings_.hangs,
                      to_string(beside), std::ranges::max(seen.replaced_ms)));
  return end_beside();
}

// --- the end
// ----------------------------------------------------------------------------------------------------------------

Status Flood::finish() {
  for (const auto& tenant : tenants_) {
    if (tenant->pair->ended())
      return fail(ErrorCode::Protocol, tenant->name + " ended: " + tenant->pair->record().last_words);
    if (!tenant->steps.repeated().empty())
      return fail(ErrorCode::Protocol, fmt::format("{} has lost {} committed steps", tenant->name,
                                                   tenant->steps.repeated().size()));
    figures_.steps += tenant->steps.steps_told();
    tenant->pair->signal(SIGTERM);
  }
  return wait("everybody's end", [this] {
    return std::ranges::all_of(tenants_, [](const auto& tenant) { return tenant->pair->ended(); });
  });
}

Status Flood::end() {
  if (beside_ != nullptr && !beside_->ended()) beside_->signal(SIGKILL);
  for (const auto& tenant : tenants_) {
    if (tenant->pair != nullptr && !tenant->pair->ended()) tenant->pair->signal(SIGKILL);
  }
  if (supervisor_ == nullptr || supervisor_->ended()) return {};
  supervisor_->signal(SIGINT);
  if (auto ended = wait("the agent's end", [this] { return supervisor_->ended(); }); !ended) return ended;
  return supervisor_->record().exit->clean()
             ? Status{}
             : fail(ErrorCode::Internal, "the agent: " + supervisor_->record().last_words);
}

// --- what is asked
// ----------------------------------------------------------------------------------------------------------------

Status Flood::wait(const std::string& why, const std::function<bool()>& done) {
  Monotonic next_look{};
  return stage_->wait(why, settings_.patience, [&] {
    if (clock_.now() < next_look) return false;
    next_look = clock_.now() + between_looks;
    return done();
  });
}

Status Flood::wait_until_protected(const std::string& why) {
  const Status waited = wait(why, [this] { return is_protected(); });
  for (const auto& tenant : tenants_)
    if (!waited && tenant->pair->ended()) return propagate(waited, tenant->name + " has ended");
  return waited;
}

bool Flood::is_protected() {
  const auto text = status();
  if (!text) return false;
  view_ = link::parse_status(*text);
  return std::ranges::all_of(tenants_, [this](const auto& tenant) {
    const auto view = view_.tenant(tenant->name);
    return view && view->phase == pair::Phase::Serving && view->standby_state == pair::Standby::Ready;
  });
}

std::optional<std::string> Flood::status() const {
  const auto link = link::AgentLink::connect(operators_socket());
  if (!link) return std::nullopt;
  auto text = (*link)->status();
  return text ? std::optional(std::move(*text)) : std::nullopt;
}

pid_t Flood::agent() const {
  os::Kernel& kernel = *platform_.kernel;
  for (const pid_t child : os::children_of(kernel, supervisor_->record().pid)) {
    const auto command = kernel.read_file(os::proc_folder(child) + "/cmdline").value_or("");
    if (command.find("--second-supervisor") == std::string::npos) return child;
  }
  return 0;
}

/// The process has its shelves and who looks for it, which are the same program.
double Flood::agent_cpu_ms() const {
  os::Kernel& kernel = *platform_.kernel;
  const pid_t pid = agent();
  auto cost = scale::cost_of(kernel, pid);
  for (const pid_t child : os::children_of(kernel, pid)) {
    const auto command = kernel.read_file(os::proc_folder(child) + "/cmdline");
    if (command && command->find("firebreakd") != std::string::npos) cost += scale::cost_of(kernel, child);
  }
  return static_cast<double>(cost.cpu_ms);
}

/// But for what it refused.
std::string Flood::last_words() const {
  constexpr std::size_t enough = 3'000;
  std::string words;
  std::istringstream log(platform_.kernel->read_file(settings_.directory + "/agent.log").value_or(""));
  for (std::string line; std::getline(log, line);) {
    const bool is_of_the_flood = line.find("refused") != line.npos || line.find("turned away") != line.npos ||
                                 line.find(" sent ") != line.npos;
    if (!is_of_the_flood) words += line + "\n";
  }
  return words.substr(words.size() - std::min(words.size(), enough));
}

double Flood::ms_since(Monotonic begin) const {
  return std::chrono::duration<double, std::milli>(clock_.now() - begin).count();
}

}  // namespace firebreak::flood
