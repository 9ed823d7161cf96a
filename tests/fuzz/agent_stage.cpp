// SPDX-License-Identifier: Apache-2.0
#include "tests/fuzz/agent_stage.h"

#include <fmt/format.h>
#include <signal.h>
#include <spdlog/spdlog.h>
#include <unistd.h>

#include <algorithm>
#include <cstdlib>
#include <nlohmann/json.hpp>

#include "agent/faults/fault/source_traits.h"
#include "agent/faults/watch/subject.h"
#include "agent/service/shelf.h"
#include "agent/service/shelves.h"
#include "ground/os/descriptors.h"
#include "ground/os/memory.h"
#include "ground/os/processes.h"
#include "tests/fuzz/targets.h"

namespace firebreak::fuzz {
namespace {

constexpr std::string_view uvm = "/dev/nvidia-uvm";
constexpr std::uint64_t of_a_pair = 27, reserve = 32, pairs_max = 7;
/// Longer than a lease, and than anybody is waited for.
constexpr Nanoseconds long_time = std::chrono::seconds(61);
/// Of rounds of that, until nothing more happens: an orderly end has four steps.
constexpr int rounds_max = 16;
/// Descriptors are closed on threads, and those are not waited for.
constexpr int closing_rounds_max = 2'000;

std::string stat_of(pid_t pid, pid_t parent) {
  std::string stat = fmt::format("{} (peer) S {}", pid, parent);
  for (int field = 5; field <= 50; ++field)
    stat += fmt::format(" {}", field == 22 ? 1000 + pid : field + pid);
  return stat;
}

std::string status_of(pid_t pid, pid_t parent, uid_t user) {
  return fmt::format(
      "Name:\tpeer\nState:\tS (sleeping)\nPid:\t{0}\nPPid:\t{1}\nUid:\t{2}\t{2}\t{2}\t{2}\nNSpid:\t{0}\n",
      pid, parent, user);
}

std::string value_of(const abi::Placed& placed, std::string_view name) {
  const auto found = std::ranges::find(placed.environment, name, &std::pair<std::string, std::string>::first);
  return found == placed.environment.end() ? std::string() : found->second;
}

std::string text_of(const os::Message& message) {
  return {reinterpret_cast<const char*>(message.bytes.data()), message.bytes.size()};
}

}  // namespace

bool AgentStage::is_possible() {
#ifdef __SANITIZE_THREAD__
  return false;  // it takes a process that shares our memory for the thread that made it
#else
  return ::geteuid() == 0;
#endif
}

AgentStage::AgentStage(bool holds)
    : directory_(std::move(os::TemporaryDirectory::create().value())),
      loop_(std::move(os::EventLoop::create(&clock_).value())) {
  // As the agent's own: what it says is most of what happens.
  spdlog::set_level(std::getenv("FIREBREAK_LOG") == nullptr ? spdlog::level::off : spdlog::level::debug);
  require(os::let_through(directory_.path()).has_value(), "others come to the sockets");
  kernel_.set_uvm_link_target(std::string(uvm));
  kernel_.add_process(::getpid());  // which is each domain's MPS server
  kernel_.set_file(os::proc_folder(::getpid()) + "/stat", stat_of(::getpid(), 1));
  kernel_.on_spawn([this](const os::SpawnRequest& request) { return start_shelf(request); });
  options_.socket_path = directory_.path() + "/agent";
  options_.tenants_socket_path = directory_.path() + "/tenants";
  options_.observers_socket_path = directory_.path() + "/status";
  options_.tenant_group = users_group;
  options_.observer_group = users_group;
  options_.tenants_of_user_max = tenants_of_user_max;
  options_.shelf_command = {"shelf"};
  options_.quota_bytes = std::uint64_t{1} << 20;
  if (!holds) options_.hold = Milliseconds(0);
  options_.descriptors_max = os::open_descriptors().value() + reserve + pairs_max * of_a_pair;
  start_agent();
  descriptors_at_start_ = descriptors_of_agent();
  set_up();
}

AgentStage::~AgentStage() {
  peers_.clear();
  agent_.reset();
  manager_.kept.clear();
  for (std::thread& shelf : shelves_) shelf.join();
}

void AgentStage::start_agent() {
  agent_ = std::move(
      agent::Agent::start(options_, *loop_, kernel_, clock_, domains_, detectors_, manager_).value());
}

/// In the place of a process: a thread, which has the other end of its socket.
Result<pid_t> AgentStage::start_shelf(const os::SpawnRequest& request) {
  auto end = os::duplicate(request.inherited.at(0).first);
  if (!end) return propagate(end);
  const pid_t pid = next_shelf_++;
  kernel_.add_process(pid);
  shelves_.emplace_back([this, pid, socket = os::Socket(std::move(*end))]() mutable {
    agent::serve_shelf(socket);
    socket.release().reset();
    kernel_.exit_process(pid, {});
  });
  return pid;
}

void AgentStage::set_up() {
  for (const uid_t user : {user_b, user_a}) {
    for (int i = 0; i < 3; ++i) start(user, agent::Entrance::Tenants, i < 2, std::nullopt);
  }
  start(user_a, agent::Entrance::Tenants, false, 5);
  start(0, agent::Entrance::Operators, false, std::nullopt);
  send(0, abi::encode(abi::Join{"b-pair", abi::Role::Active}), -1);
  send(1, abi::encode(abi::Join{"b-pair", abi::Role::Standby}), -1);
  send(1, abi::encode(abi::Ready{}), -1);
  send(2, abi::encode(abi::Place{"b-placed", abi::Role::Active}), -1);
  send(3, abi::encode(abi::Join{"a-1", abi::Role::Active}), -1);
  const Seen now = look();
  require(now.names.contains(user_b) && now.names.at(user_b).contains("b-pair"),
          "a pair is there to begin with");
  require(tokens_.contains({user_b, "b-placed"}), "a tenant is to come");
  is_set_up_ = true;
}

// --- what happens
// ---------------------------------------------------------------------------------------------------

Peer* AgentStage::find(std::size_t peer) { return peers_.empty() ? nullptr : &peers_[peer % peers_.size()]; }

const Peer* AgentStage::find(std::size_t peer) const {
  return peers_.empty() ? nullptr : &peers_[peer % peers_.size()];
}

std::optional<uid_t> AgentStage::actor_of(const Peer& peer) const {
  return peer.entrance == agent::Entrance::Operators ? std::nullopt : std::optional(peer.user);
}

void AgentStage::start(uid_t user, agent::Entrance entrance, bool has_gpu,
                       std::optional<std::size_t> parent) {
  if (peers_.size() >= peers_max) return;
  auto process = ThinProcess::start(user, user == 0 ? 0 : users_group);
  if (process == nullptr) return;
  const Peer* const from = parent ? find(*parent) : nullptr;
  const pid_t pid = process->pid(), parent_pid = from == nullptr ? 1 : from->pid();
  kernel_.add_process(pid);
  kernel_.set_file(os::proc_folder(pid) + "/stat", stat_of(pid, parent_pid));
  kernel_.set_file(os::proc_folder(pid) + "/status", status_of(pid, parent_pid, user));
  if (has_gpu) {
    if (auto space = os::create_memory_file("space", 4096))
      kernel_.give_descriptor(pid, 7, std::string(uvm), std::move(*space));
  }
  user_of_[pid] = user;
  Peer peer;
  peer.process = std::move(process);
  peer.user = user;
  peers_.push_back(std::move(peer));
  connect(peers_.size() - 1, entrance);
}

void AgentStage::connect(std::size_t peer, agent::Entrance entrance) {
  Peer* const its = find(peer);
  if (its == nullptr) return;
  disconnect(peer);
  const std::string& path = entrance == agent::Entrance::Operators ? options_.socket_path
                            : entrance == agent::Entrance::Tenants ? options_.tenants_socket_path
                                                                   : options_.observers_socket_path;
  its->entrance = entrance;
  step(actor_of(*its), [&] {
    if (os::Fd connection = its->process->connect(path)) its->socket.emplace(std::move(connection));
  });
}

void AgentStage::disconnect(std::size_t peer) {
  Peer* const its = find(peer);
  if (its == nullptr || !its->socket) return;
  step(actor_of(*its), [&] {
    its->socket.reset();
    its->placed.clear();
  });
}

void AgentStage::send(std::size_t peer, const std::string& text, int descriptor) {
  Peer* const its = find(peer);
  if (its == nullptr || !its->socket || text.empty()) return;
  if (const auto letter = abi::decode_letter(text)) {
    if (const auto* place = std::get_if<abi::Place>(&letter->message)) its->asked = place->tenant;
  }
  spdlog::debug("process {} of user {} says {}", its->pid(), its->user, text);
  if (descriptor >= 0) note_descriptor(*its, descriptor);
  step(actor_of(*its), [&] {
    const std::span<const int> descriptors(&descriptor, descriptor >= 0 ? 1 : 0);
    (void)its->socket->send(std::as_bytes(std::span(text)), descriptors, Milliseconds(0));
  });
}

void AgentStage::write_page(std::size_t peer, std::size_t offset, std::string_view bytes) {
  Peer* const its = find(peer);
  if (its == nullptr || !its->page) return;
  step(its->user, [&] {
    (void)!::pwrite(its->page.get(), bytes.data(), bytes.size(),
                    static_cast<off_t>(offset % sizeof(abi::SharedPage)));
  });
}

/// Whoever shares its domain may hear of danger, so nobody is asked whether anything has changed.
void AgentStage::end(std::size_t peer) {
  const Peer* const its = find(peer);
  if (its == nullptr) return;
  step(std::nullopt, [&] { forget(its->pid()); });
}

void AgentStage::forget(pid_t pid) {
  const auto found = std::ranges::find_if(peers_, [pid](const Peer& each) { return each.pid() == pid; });
  if (found == peers_.end()) return;
  peers_.erase(found);
  for (const char* file : {"/stat", "/status"}) kernel_.remove(os::proc_folder(pid) + file);
  kernel_.exit_process(pid, {});
  (void)kernel_.try_wait(pid);
  detectors_.callbacks.on_exit(pid);
}

void AgentStage::pass(Nanoseconds time) {
  step(std::nullopt, [&] { clock_.advance(time); });
}

void AgentStage::change_domain(const std::string& domain, mps::DomainState state) {
  step(std::nullopt, [&] { domains_.states[domain] = state; });
}

void AgentStage::lose_clients(const std::string& domain) {
  step(std::nullopt, [&] { domains_.callbacks.on_clients_lost(domain); });
}

void AgentStage::name_clients(const std::string& domain) {
  mps::ClientList clients{clock_.now(), {}};
  for (const Peer& each : peers_) clients.pids.push_back(each.pid());
  step(std::nullopt, [&] { domains_.callbacks.on_clients(domain, clients); });
}

void AgentStage::answer_termination(bool is_good) {
  if (domains_.terminations.empty()) return;
  step(std::nullopt, [&] {
    const auto first = domains_.terminations.begin();
    const auto done = std::move(first->second);
    domains_.terminations.erase(first);
    done(is_good ? Status{} : Status(fail(ErrorCode::Timeout, "MPS does not answer")));
  });
}

void AgentStage::hear(fault::FaultSource source, fault::FaultClass of, pid_t pid) {
  fault::Fault fault;
  fault.fault_class = of;
  fault.pid = pid;
  fault.when = clock_.now();
  fault.source = source;
  const auto found = detectors_.targets.find(pid);
  const watch::Target* target = found == detectors_.targets.end() ? nullptr : &found->second;
  if (target != nullptr && !fault::traits_of(source).has_process_alone) set_subject(fault, *target);
  const auto domain_of_server = [this](pid_t of_pid) -> std::optional<std::string> {
    const auto domain = domains_.domain_of_server(of_pid);
    return domain ? std::optional(std::string(*domain)) : std::nullopt;
  };
  step(std::nullopt, [&] {
    detectors_.callbacks.on_fault(
        watch::completed(std::move(fault), target, {.domain_of_server = domain_of_server}));
  });
}

void AgentStage::open_gpu(std::size_t peer) {
  const Peer* const its = find(peer);
  if (its == nullptr) return;
  spdlog::debug("process {} of user {} opens the GPU", its->pid(), its->user);
  step(its->user, [&] { detectors_.callbacks.on_gpu_opened(its->pid()); });
}

void AgentStage::restart_agent() {
  const auto names = look().names;
  step(std::nullopt, [&] {
    agent_->hand_over();
    agent_.reset();
    domains_.terminations.clear();
    for (Peer& each : peers_) {
      each.socket.reset();
      each.placed.clear();
    }
    start_agent();
  });
  for (const auto& [user, its] : look().names) {
    for (const std::string& name : its) {
      for (const auto& [user_before, its_before] : names)
        require(user == user_before || !its_before.contains(name), "the next agent knows whose a tenant is");
    }
  }
}

std::string AgentStage::tenant_asked_by(std::size_t peer) const {
  const Peer* const its = find(peer);
  return its == nullptr ? std::string() : its->asked;
}

std::string AgentStage::token_for(std::size_t peer, const std::string& tenant) const {
  const Peer* const its = find(peer);
  const auto found = its == nullptr ? tokens_.end() : tokens_.find({its->user, tenant});
  return found == tokens_.end() ? std::string() : found->second;
}

// --- what follows
// ---------------------------------------------------------------------------------------------------

void AgentStage::step(std::optional<uid_t> actor, const std::function<void()>& acts) {
  if (!is_set_up_) actor.reset();
  if (actor && !seen_) seen_ = look();
  acts();
  settle();
  check_budgets();
  if (actor) {
    Seen now = look();
    check(*actor, *seen_, now);
    seen_ = std::move(now);
  } else {
    seen_.reset();
  }
  hear_of_dead();
}

void AgentStage::settle() {
  constexpr int turns_max = 10'000;
  for (int turn = 0; turn < turns_max; ++turn) {
    const bool awaits_others = agent_->awaits_shelves();
    const bool served = loop_->run_once(Milliseconds(awaits_others ? 1 : 0));
    if (!served && awaits_others) clock_.advance(Milliseconds(1));
    if (!served && !awaits_others) {
      drain();
      if (!loop_->run_once(Milliseconds(0))) return;
    }
  }
  require(false, "the agent comes to rest");
}

/// Whom the agent has ended.
void AgentStage::hear_of_dead() {
  const auto signals = kernel_.signals();
  std::vector<pid_t> dead;
  for (; signals_heard_ < signals.size(); ++signals_heard_) dead.push_back(signals[signals_heard_].pid);
  for (const pid_t pid : dead) step(std::nullopt, [&] { forget(pid); });
}

void AgentStage::drain() {
  for (Peer& each : peers_) {
    if (each.socket) drain(each);
  }
}

void AgentStage::drain(Peer& peer) {
  for (;;) {
    auto received = peer.socket->receive(Milliseconds(0));
    if (!received) {
      if (received.error().code == ErrorCode::Unavailable) {
        peer.socket.reset();
        peer.placed.clear();
      }
      return;
    }
    const std::string text = text_of(*received);
    const auto letter = abi::decode_letter(text);
    require(letter.has_value(), "the agent says what can be understood");
    for (const os::Fd& each : received->descriptors) note_descriptor(peer, each.get());
    if (peer.entrance != agent::Entrance::Operators) {
      for (const auto& [whose, token] : tokens_) {
        require(whose.first == peer.user || text.find(token) == text.npos, "nobody is told another's token");
      }
    }
    const bool has_joined = std::holds_alternative<abi::Joined>(letter->message);
    if (has_joined && received->descriptors.size() == 1) peer.page = std::move(received->descriptors[0]);
    hear_answer(peer, letter->message);
  }
}

void AgentStage::hear_answer(Peer& peer, const abi::Message& message) {
  if (const auto* placed = std::get_if<abi::Placed>(&message)) {
    const std::string tenant = value_of(*placed, "FIREBREAK_TENANT");
    require(tenant == peer.asked, "who asks for a tenant is told of that one");
    peer.placed = peer.entrance == agent::Entrance::Operators ? "" : tenant;
    const std::string token = value_of(*placed, "FIREBREAK_TOKEN");
    // An operator is told that of another's tenant, too.
    const bool is_known =
        std::ranges::any_of(tokens_, [&](const auto& each) { return each.second == token; });
    if (!is_known) {
      std::erase_if(tokens_, [&](const auto& each) { return each.first.second == tenant; });
      tokens_[{peer.user, tenant}] = token;
    }
  }
  // Whoever has come was told to, on whatever connection.
  const bool has_come =
      std::holds_alternative<abi::Joined>(message) || std::holds_alternative<abi::Done>(message);
  if (!has_come) return;
  for (Peer& each : peers_) {
    if (each.user == peer.user) each.placed.clear();
  }
}

/// What one user has had of a tenant's, another has not. Root is an operator as well.
void AgentStage::note_descriptor(const Peer& peer, int descriptor) {
  if (peer.user == 0) return;
  const auto identity = os::identity_of(descriptor);
  const auto kind = os::kind_of(descriptor);
  if (!identity || kind == os::DescriptorKind::Other) return;
  auto& users = files_[*identity];
  users.insert(peer.user);
  require(users.size() < 2, "nobody is given what is another's");
}

// --- what must hold
// ---------------------------------------------------------------------------------------------------

/// Reading it takes longer than all the rest, and most steps change nothing.
AgentStage::Seen AgentStage::look() const {
  std::string text = agent_->status_json();
  Seen seen;
  if (seen_ && seen_->text == text) {
    seen = *seen_;
    seen.terminations.clear();
  } else {
    read_status(nlohmann::json::parse(text), seen);
    seen.text = std::move(text);
  }
  seen.signals = kernel_.signals().size();
  seen.expected = detectors_.expected.size();
  for (const auto& [pid, done] : domains_.terminations) seen.terminations.insert(pid);
  seen.output = detectors_.output;
  return seen;
}

void AgentStage::read_status(const nlohmann::json& status, Seen& seen) const {
  for (const auto& each : status["tenants"]) {
    if (each["owner"].is_null()) continue;
    const auto user = each["owner"].get<uid_t>();
    auto its = each;
    its.erase("unprotected_ms");
    seen.tenants[user] += its.dump() + "\n";
    seen.names[user].insert(each["name"].get<std::string>());
  }
  for (const auto& each : status["holds"]) {
    seen.awaits_threads |= !each["since_death_ms"].is_null();
  }
  const auto& of = status["descriptors"];
  require(of["promised"].get<std::uint64_t>() + reserve <= of["limit"].get<std::uint64_t>() + of_a_pair,
          "no more descriptors are promised than there are");
}

void AgentStage::check(uid_t actor, const Seen& before, const Seen& now) {
  check_room(now);
  for (const uid_t user : {user_a, user_b, uid_t{0}}) {
    if (user == actor || before.awaits_threads || now.awaits_threads) continue;
    const auto was = before.tenants.find(user), is = now.tenants.find(user);
    const std::string text_before = was == before.tenants.end() ? "" : was->second;
    const std::string text_now = is == now.tenants.end() ? "" : is->second;
    if (text_before != text_now)
      std::fprintf(stderr, "by user %u, of user %u before:\n%safter:\n%s", actor, user, text_before.c_str(),
                   text_now.c_str());
    require(text_before == text_now, "what one does changes nothing of another's");
  }
  const auto is_others = [&](pid_t pid) {
    const auto user = user_of_.find(pid);
    return user == user_of_.end() || user->second != actor;
  };
  const auto signals = kernel_.signals();
  for (std::size_t i = before.signals; i < signals.size(); ++i)
    require(!is_others(signals[i].pid), "nobody has another's process ended");
  for (std::size_t i = before.expected; i < detectors_.expected.size(); ++i)
    require(!is_others(detectors_.expected[i]), "nobody has another's process taken off the GPU");
  for (const pid_t pid : now.terminations)
    require(before.terminations.contains(pid) || !is_others(pid), "MPS is asked about nobody else's process");
  for (const auto& [pid, output] : now.output) {
    const auto was = before.output.find(pid);
    const bool has_grown = was == before.output.end() || was->second != output;
    require(!has_grown || !is_others(pid), "nobody blames another's process");
  }
}

/// Of a user who comes as a tenant; of operators there is no such limit.
void AgentStage::check_room(const Seen& now) const {
  for (const uid_t user : {user_a, user_b}) {
    const auto found = now.names.find(user);
    std::set<std::string> names = found == now.names.end() ? std::set<std::string>() : found->second;
    std::map<std::string, std::size_t> coming;
    for (const Peer& each : peers_) {
      if (each.user != user || each.placed.empty()) continue;
      names.insert(each.placed);
      ++coming[each.placed];
    }
    require(names.size() <= tenants_of_user_max, "a user has so many tenants at most");
    for (const auto& [name, count] : coming) require(count <= 4, "four of a tenant may be waited for");
  }
}

void AgentStage::check_budgets() const {
  require(descriptors_of_agent() <= options_.descriptors_max, "the agent keeps to its descriptors");
}

/// Without those of the processes that are played here, and of the service manager.
std::size_t AgentStage::descriptors_of_agent() const {
  std::size_t others = manager_.kept.size() + shelves_.size();
  for (const Peer& each : peers_) others += 2 + (each.socket ? 1 : 0) + (each.page ? 1 : 0);
  const std::size_t open = os::open_descriptors().value_or(0);
  return open > others ? open - others : 0;
}

void AgentStage::end_all() {
  for (const char* domain : {"a", "b"}) domains_.states[domain] = mps::DomainState::Serving;
  while (!peers_.empty()) end(0);
  for (int round = 0; round < 2 || (round < rounds_max && is_anything_kept()); ++round) {
    while (!domains_.terminations.empty()) answer_termination(false);
    pass(long_time);
  }
  check_nothing_is_left();
}

/// Of any tenant.
bool AgentStage::is_anything_kept() const {
  return std::ranges::any_of(manager_.kept, [](const auto& each) {
    return each.first != agent::document_name() && !agent::is_shelf(each.first);
  });
}

void AgentStage::check_nothing_is_left() {
  // What is closed on threads is told in the loop.
  const auto is_left = [this] {
    const auto status = nlohmann::json::parse(agent_->status_json());
    return !status["tenants"].empty() || !status["holds"].empty() || is_anything_kept() ||
           // Of each shelf the agent has an end, and the kernel that is played here a process.
           descriptors_of_agent() > descriptors_at_start_ + 2 * shelves_.size();
  };
  for (int round = 0; round < closing_rounds_max && is_left(); ++round) {
    loop_->run_once(Milliseconds(1));
    if (round % 100 == 99) clock_.advance(long_time);
  }
  if (is_left()) {
    std::fprintf(stderr, "%s\n%zu descriptors, %zu at first, %zu shelves\n", agent_->status_json().c_str(),
                 descriptors_of_agent(), descriptors_at_start_, shelves_.size());
    for (const auto& [name, descriptor] : manager_.kept) std::fprintf(stderr, "kept: %s\n", name.c_str());
  }
  require(!is_left(), "nothing is left once all have gone");
  for (std::size_t i = 0; i < tenants_of_user_max; ++i) {
    start(user_a, agent::Entrance::Tenants, false, std::nullopt);
    send(i, abi::encode(abi::Place{fmt::format("new-{}", i), abi::Role::Active}), -1);
    require(!peers_.at(i).placed.empty(), "a user has all its room again once its tenants have gone");
  }
}

}  // namespace firebreak::fuzz
