// SPDX-License-Identifier: Apache-2.0
#include "characterize/scene.h"

#include <fmt/format.h>
#include <signal.h>

#include <algorithm>
#include <charconv>
#include <future>

#include "gpu/either_gpu.h"
#include "inject/kind.h"

namespace firebreak::characterize {
namespace {

constexpr Milliseconds hearing_patience{1'000};

/// The time in "ready 123456789"; 0 where there is none.
std::int64_t time_in(const std::string& line) {
  std::int64_t at_ns = 0;
  const std::size_t space = line.find(' ');
  if (space != std::string::npos) std::from_chars(line.data() + space + 1, line.data() + line.size(), at_ns);
  return at_ns;
}

bool in_domain_a(Role role) { return role == Role::Faulter || role == Role::CoClient; }

std::string domain_name_of(Role role) {
  if (role == Role::Outside) return {};
  return in_domain_a(role) ? "a" : "b";
}

}  // namespace

Result<std::unique_ptr<Scene>> Scene::create(const Settings& settings, const Clock& clock) {
  auto directory = os::TemporaryDirectory::create();
  if (!directory) return propagate(directory);
  std::unique_ptr<Scene> scene(new Scene(settings, clock, std::move(*directory)));
  auto platform = gpu::choose_either(scene->directory_.path() + "/gpu", settings.gpu);
  if (!platform) return propagate(platform);
  scene->platform_.emplace(std::move(*platform));
  scene->environment_.emplace(scene->platform_->environment);
  auto stage = stage::Stage::create(*scene->platform_->kernel, clock);
  if (!stage) return propagate(stage);
  scene->stage_ = std::move(*stage);
  scene->look_at_memory();
  if (Status started = scene->start_domains(); !started) return propagate(started);
  scene->start_watcher();
  return scene;
}

Scene::~Scene() { close(); }

void Scene::look_at_memory() {
  auto memory = GpuMemory::open(platform_->nvml_library);
  const auto used = memory ? memory->used_bytes() : propagate(memory);
  if (!used) return notes_.push_back("memory left behind is not known: " + to_string(used.error()));
  memory_.emplace(std::move(*memory));
  used_before_bytes_ = *used;
}

std::optional<std::int64_t> Scene::close() {
  watcher_.reset();
  stray_watch_.reset();
  holder_.reset();
  stage_.reset();
  // A server takes a while to let its GPU context go.
  auto other = std::async(std::launch::async, [this] { domain_b_.reset(); });
  domain_a_.reset();
  other.get();
  if (!memory_) return std::nullopt;
  const auto used = memory_->used_bytes();
  memory_.reset();
  if (!used) return std::nullopt;
  return *used - used_before_bytes_;
}

Status Scene::start_domains() {
  // One after the other: a daemon ends with the thread that started it.
  for (auto [name, domain] : {std::pair("a", &domain_a_), std::pair("b", &domain_b_)}) {
    mps::DomainOptions options;
    options.name = name;
    options.directory = fmt::format("{}/{}", directory_.path(), name);
    options.control_program = platform_->control_program;
    options.environment = platform_->environment;
    auto started = mps::Domain::start(*platform_->kernel, options);
    if (!started) return propagate(started);
    *domain = std::move(*started);
  }
  return {};
}

void Scene::start_watcher() {
  watch::WatcherOptions options;
  options.nvml_library = platform_->nvml_library;
  for (const std::string domain : {"a", "b"}) {
    const std::string& directory =
        options.mps_log_directories.emplace_back(directory_.path() + "/" + domain + "/log");
    options.domain_of_log_directory[directory] = domain;
  }
  options.places.domain_of_server = [this](pid_t pid) {
    const auto found = servers_.find(pid);
    return found == servers_.end() ? std::nullopt : std::optional(found->second);
  };
  if (settings_.guard) start_stray_watch();
  if (settings_.hold.count() > 0) start_holder();
  watcher_ = std::make_unique<watch::Watcher>(stage_->loop(), *platform_->kernel, clock_, std::move(options),
                                              heard());
  if (stray_watch_) stray_watch_->attach(*watcher_);
  for (std::string& note : watcher_->start()) notes_.push_back(std::move(note));
}

watch::WatcherCallbacks Scene::heard() {
  watch::WatcherCallbacks heard;
  heard.on_signal = [this](const fault::Fault& fault) {
    signals_.push_back(fault);
    last_event_ = clock_.now();
  };
  heard.on_incident = [this](const fault::Incident& incident) { incidents_[incident.id] = incident; };
  heard.on_uvm_heard = [this](pid_t pid) {
    if (holder_) holder_->look(pid);
  };
  heard.on_exit = [this](const watch::ProcessExit& exit) {
    if (holder_) holder_->keep(exit.pid);
  };
  return stray_watch_ ? stray_watch_->hear(std::move(heard)) : heard;
}

void Scene::start_stray_watch() {
  strays::GuardCallbacks callbacks;
  callbacks.on_stray = [this](const strays::Stray& stray) {
    strays_.push_back(stray);
    last_event_ = clock_.now();
  };
  callbacks.on_guard = [this](pid_t, const strays::GuardReport& guard) {
    if (guard.state == abi::GuardState::Off) notes_.push_back("the guard is off: " + guard.note);
  };
  stray_watch_ =
      std::make_unique<strays::GuardedWatch>(stage_->loop(), *platform_->kernel, std::move(callbacks));
}

void Scene::start_holder() {
  hold::HolderCallbacks callbacks;
  callbacks.on_released = [this](const hold::Release& release) {
    release_ = release;
    last_event_ = clock_.now();
  };
  hold::HolderOptions options;
  options.hold = settings_.hold;
  holder_ = std::make_unique<hold::Holder>(stage_->loop(), *platform_->kernel, clock_, options,
                                           std::move(callbacks));
}

mps::Environment Scene::environment_of(Role role) const {
  mps::Environment environment = platform_->environment;
  if (role == Role::Outside) return environment;
  const mps::Domain& domain = in_domain_a(role) ? *domain_a_ : *domain_b_;
  for (auto& variable : domain.client_environment()) environment.push_back(std::move(variable));
  return environment;
}

std::vector<std::string> Scene::victim_command(const char* how) const {
  return {settings_.programs + "/firebreak-lab", "victim", how, std::to_string(settings_.pace.count())};
}

void Scene::hear(Player& player, const std::string& line) {
  last_event_ = clock_.now();
  player.fault.hear(line);
  if (line.starts_with("ready ")) player.ready_at_ns = time_in(line);
  if (line == "prepared") player.ready_at_ns = to_ns(last_event_);
  if (line == "begun") player.begun = true;
  if (!line.starts_with('{')) return;
  if (auto record = parse_victim_record(line)) player.record = std::move(*record);
}

Status Scene::start(Role role, const std::string& kind, double end_after_share) {
  Player& player = players_[role];
  stage::Casting casting{key_of(role), key_of(role), victim_command("--pace-ms"), environment_of(role)};
  if (role == Role::Faulter)
    casting.command = {settings_.programs + "/firebreak-lab", "inject", kind, "--wait"};
  if (role == Role::Faulter && end_after_share > 0)
    casting.command.push_back(fmt::format("--end-after={:.3f}", end_after_share));
  if (role == Role::Faulter && settings_.guard) {
    auto preload = platform::guard_preload();
    if (!preload) return propagate(preload);
    for (auto& variable : *preload) casting.environment.push_back(std::move(variable));
  }
  auto entered = stage_->enter(casting, [this, &player](const std::string& line) { hear(player, line); });
  if (!entered) return propagate(entered);
  player.actor = *entered;
  const pid_t pid = player.actor->record().pid;
  const Status followed = watcher_->follow({pid, 0, domain_name_of(role), key_of(role)});
  if (!followed) notes_.push_back(fmt::format("{}: {}", key_of(role), to_string(followed.error())));
  if (stray_watch_ && role == Role::Faulter) stray_watch_->follow(pid);
  if (holder_ && role == Role::Faulter) return holder_->follow(pid);
  return {};
}

Status Scene::enter(const std::string& kind, double end_after_share) {
  for (const Role role : roles) {
    if (Status started = start(role, kind, end_after_share); !started) return started;
  }
  return wait_until_ready();
}

Status Scene::wait_until_ready() {
  const auto ready = [this](Role role) { return of(role).ready_at_ns != 0; };
  const auto nobody_ended = [this] {
    return std::ranges::none_of(roles, [this](Role role) { return of(role).actor->ended(); });
  };
  Status up = stage_->wait("the processes' readiness", settings_.start_patience,
                           [&] { return std::ranges::all_of(roles, ready) || !nobody_ended(); });
  if (!up) return up;
  if (!std::ranges::all_of(roles, ready)) {
    const auto gone = std::ranges::find_if(roles, [this](Role role) { return of(role).actor->ended(); });
    const stage::ActorRecord& process = of(*gone).actor->record();
    const bool refused = *gone == Role::Faulter && process.exit->exit_code == refused_status;
    return fail(refused ? ErrorCode::Unsupported : ErrorCode::Unavailable,
                fmt::format("{} did not start: {}", key_of(*gone), process.last_words));
  }
  remember_servers();
  const auto heard = [this](Role role) { return watcher_->hears_uvm_of(of(role).actor->record().pid); };
  const Status hearing = stage_->wait("hearing everybody's UVM events", hearing_patience,
                                      [&] { return std::ranges::all_of(roles, heard); });
  if (stage_->interrupted()) return hearing;
  for (const Role role : roles) {
    if (!heard(role)) notes_.push_back(fmt::format("UVM events of {} are not heard", key_of(role)));
  }
  if (settings_.hold.count() > 0) {
    if (Status held = wait_for_hold(); !held) return held;
  }
  return settings_.guard ? wait_for_guard() : Status();
}

Status Scene::wait_for_hold() {
  return stage_->wait("the faulter's descriptors", hearing_patience,
                      [this] { return !holder_->held().empty(); });
}

Status Scene::wait_for_guard() {
  const Status listening = stage_->wait("the faulter's guard", hearing_patience, [this] {
    return stray_watch_->is_heard(of(Role::Faulter).actor->record().pid);
  });
  if (stage_->interrupted()) return listening;
  if (!listening) notes_.push_back("strays of the faulter are not heard");
  return {};
}

void Scene::remember_servers() {
  for (auto [name, domain] : {std::pair("a", domain_a_.get()), std::pair("b", domain_b_.get())}) {
    const auto pids = domain->server_pids();
    if (!pids) continue;
    for (const pid_t pid : *pids) servers_[pid] = name;
  }
}

Status Scene::begin_records() {
  for (const Role role : victim_roles) of(role).actor->tell("begin");
  return stage_->wait("the victims' records", settings_.start_patience, [this] {
    return std::ranges::all_of(victim_roles,
                               [this](Role role) { return of(role).begun || of(role).actor->ended(); });
  });
}

Result<Player*> Scene::enter_new_client() {
  new_clients_.push_back(std::make_unique<Player>());
  Player& player = *new_clients_.back();
  stage::Casting casting{"new client", "new client", victim_command("--pace-ms"),
                         environment_of(Role::CoClient)};
  casting.command.push_back("--once");
  auto entered = stage_->enter(casting, [this, &player](const std::string& line) { hear(player, line); });
  if (!entered) return propagate(entered);
  player.actor = *entered;
  // The process may be gone before we have heard that its kernel is done: its own end is not the fault's
  // doing.
  watcher_->expect_exit(player.actor->record().pid);
  return &player;
}

Status Scene::end() {
  for (auto& [role, player] : players_) {
    if (player.actor == nullptr) continue;
    watcher_->expect_exit(player.actor->record().pid);
    player.actor->tell("end");
    player.actor->close_input();
    if (role == Role::Faulter) player.actor->signal(SIGKILL);
  }
  const auto over = [](const auto& entry) {
    return entry.second.actor == nullptr || entry.second.actor->ended();
  };
  return stage_->wait("everybody's end", settings_.end_patience,
                      [&] { return std::ranges::all_of(players_, over); });
}

std::string Scene::name_of(pid_t pid) const {
  for (const auto& [role, player] : players_) {
    if (player.actor != nullptr && player.actor->record().pid == pid) return key_of(role);
  }
  const auto server = servers_.find(pid);
  return server == servers_.end() ? "other" : "server_" + server->second;
}

}  // namespace firebreak::characterize
