// SPDX-License-Identifier: Apache-2.0
#include "agent/domains/mps/domain_keeper.h"

#include <fmt/format.h>

#include <algorithm>
#include <future>

#include "ground/os/processes.h"
#include "ground/os/self.h"

namespace firebreak::mps {

const char* to_string(DomainState state) {
  switch (state) {
    case DomainState::Serving:
      return "serving";
    case DomainState::Draining:
      return "draining";
    case DomainState::Restarting:
      return "restarting";
  }
  return "?";
}

const char* describe_state(const DomainReport& report) {
  if (!report.gpu_needs.empty()) return "gpu_failed";
  return report.state == DomainState::Serving && report.silent ? "silent" : to_string(report.state);
}

DomainKeeper::DomainKeeper(os::Kernel& kernel, KeeperOptions options, std::unique_ptr<os::EventLoop> loop,
                           KeeperCallbacks callbacks)
    : kernel_(kernel),
      options_(std::move(options)),
      callbacks_(std::move(callbacks)),
      loop_(std::move(loop)),
      backoff_(options_.first_backoff, options_.longest_backoff, options_.forgets_failures_after),
      drain_looks_(options_.first_drain_look, options_.longest_drain_look, options_.longest_drain_look * 2) {
  report_.name = options_.domain.name;
  report_.gpu = options_.domain.gpu;
}

Result<std::unique_ptr<DomainKeeper>> DomainKeeper::start(os::Kernel& kernel, KeeperOptions options,
                                                          KeeperCallbacks callbacks) {
  auto loop = os::EventLoop::create();
  if (!loop) return propagate(loop);
  std::unique_ptr<DomainKeeper> keeper(
      new DomainKeeper(kernel, std::move(options), std::move(*loop), std::move(callbacks)));
  std::promise<Status> started;
  // A daemon that is to die with us dies with the thread that has started it.
  auto thread = os::start_thread([raw = keeper.get(), &started] {
    raw->run([&started](Status status) { started.set_value(std::move(status)); });
  });
  if (!thread) return propagate(thread);
  keeper->thread_ = std::move(*thread);
  if (Status up = started.get_future().get(); !up) return propagate(up);
  return keeper;
}

DomainKeeper::~DomainKeeper() {
  loop_->stop();
  if (thread_.joinable()) thread_.join();
}

void DomainKeeper::run(const std::function<void(Status)>& started) {
  Status up = bring_up();
  const bool is_up = up.has_value();
  if (is_up) environment_ = domain()->client_environment();
  started(std::move(up));
  if (!is_up) return;
  if (auto looks = loop_->every(options_.between_log_looks, [this] { bound_logs(); })) {
    log_looks_ = std::move(*looks);
  }
  if (auto looks = loop_->every(options_.between_client_looks, [this] { list_clients(); })) {
    client_looks_ = std::move(*looks);
  }
  if (options_.idle_clients_asked_every > Milliseconds(0)) {
    auto looks = loop_->every(options_.idle_clients_asked_every, [this] {
      (void)look();
      ask_for_faults();
    });
    if (looks) idle_looks_ = std::move(*looks);
  }
  loop_->run();
  end();
}

void DomainKeeper::end() {
  daemon_watch_.cancel();
  next_start_.cancel();
  next_look_.cancel();
  next_drain_look_.cancel();
  next_fault_look_.cancel();
  next_client_look_.cancel();
  client_looks_.cancel();
  idle_looks_.cancel();
  log_looks_.cancel();
  servers_.clear();
  const auto domain = this->domain();
  if (!domain) return;
  const bool is_for_others = options_.domain.outlives_us && domain->is_taken_over();
  if (is_for_others && !ends_for_good_.load(std::memory_order_relaxed)) return domain->leave();
  static_cast<void>(domain->quit(options_.domain.quit_timeout));
}

Status DomainKeeper::bring_up() {
  auto domain = Domain::start(kernel_, options_.domain);
  if (!domain) return propagate(domain);
  auto watch = loop_->watch_readable((*domain)->daemon().get(), [this] { daemon_ended(); });
  if (!watch) return propagate(watch);
  daemon_watch_ = std::move(*watch);
  began_ = clock_.now();
  had_fault_ = has_fallen_ = false;
  const std::string takeover = (*domain)->takeover();
  {
    const std::lock_guard lock(mutex_);
    report_.daemon_pid = (*domain)->daemon_pid();
    report_.state = DomainState::Serving;
    report_.silent = false;
    domain_ = std::move(*domain);
  }
  if (!takeover.empty()) tell(takeover);
  list_clients();
  // Whoever has one already gets no new clients.
  if (!takeover.empty()) ask_for_faults();
  return {};
}

void DomainKeeper::daemon_ended() {
  next_start_.cancel();
  const std::shared_ptr<Domain> dead = let_go_of_daemon();
  {
    const std::lock_guard lock(mutex_);
    ++report_.daemon_restarts;
  }
  callbacks_.on_clients_lost();
  const std::string what =
      fmt::format("its MPS daemon {} has ended: {}", dead->daemon_pid(), dead->last_words());
  // Its servers end with it (H100, driver 580); one that does not would keep the next daemon from its place.
  static_cast<void>(dead->quit(Milliseconds(0)));
  try_again(clock_.now() - began_, what, [this] { start_daemon(); });
}

/// Nobody is served until the next one is there.
std::shared_ptr<Domain> DomainKeeper::let_go_of_daemon() {
  daemon_watch_.cancel();
  servers_.clear();
  const std::lock_guard lock(mutex_);
  report_.state = DomainState::Restarting;
  report_.daemon_pid = 0;
  for (const pid_t server : report_.servers) note_end(server);
  report_.servers.clear();
  return std::exchange(domain_, nullptr);
}

void DomainKeeper::start_daemon() {
  if (const Status up = bring_up(); !up) {
    return try_again(Nanoseconds(0), "it cannot be started: " + to_string(up.error()),
                     [this] { start_daemon(); });
  }
  tell(fmt::format("serves again, with daemon {}", report().daemon_pid));
}

void DomainKeeper::try_again(Nanoseconds lived, const std::string& what, std::function<void()> start) {
  const Milliseconds delay = backoff_.after_failure(lived);
  next_start_ = loop_->after_or_now(delay, std::move(start));
  tell(fmt::format("{}; again in {} ms", what, delay.count()));
}

// --- servers
// ------------------------------------------------------------------------------------------------------

void DomainKeeper::look_for_servers() {
  loop_->post([this] { look_until_found(options_.first_server_look); });
}

/// The first client has a server started only once it comes to that; later ones find it.
void DomainKeeper::look_until_found(Milliseconds next) {
  (void)look();
  if (!servers_.empty() || next > options_.longest_server_look) {
    next_look_.cancel();
    return;
  }
  next_look_ = loop_->after_or_now(next, [this, next] { look_until_found(next * 2); });
}

Result<std::vector<pid_t>> DomainKeeper::look() {
  const auto domain = this->domain();
  if (!domain) return fail(ErrorCode::Unavailable, "no MPS daemon runs");
  auto pids = domain->server_pids();
  if (!pids) return propagate(pids);
  for (const pid_t pid : *pids) take_server(pid);
  return pids;
}

void DomainKeeper::look_for_clients() {
  // One answer is for all who have asked before it was asked for.
  if (clients_wanted_.exchange(true, std::memory_order_relaxed)) return;
  loop_->post([this] {
    clients_wanted_.store(false, std::memory_order_relaxed);
    list_clients();
    next_client_look_ = loop_->after_or_now(options_.second_client_look, [this] {
      next_client_look_.cancel();
      list_clients();
    });
  });
}

/// A list that lacks a server's answer is none.
void DomainKeeper::list_clients() {
  ClientList list;
  list.asked = clock_.now();
  const auto servers = look();
  note_answer(servers);
  const auto domain = this->domain();
  if (!servers || !domain) return;
  for (const pid_t server : *servers) {
    const auto clients = domain->clients(server);
    if (!clients && clients.error().code != ErrorCode::NotFound) return;
    if (clients) list.pids.insert(list.pids.end(), clients->begin(), clients->end());
  }
  callbacks_.on_clients(list);
}

/// A client that comes to a daemon that somebody has stopped would wait for it. On a busy machine one answer
/// may be late.
void DomainKeeper::note_answer(const Result<std::vector<pid_t>>& answer) {
  if (!answer && answer.error().code != ErrorCode::Timeout) return;
  silences_ = answer ? 0 : silences_ + 1;
  if (silences_ == 1) return look_for_clients();
  {
    const std::lock_guard lock(mutex_);
    if (std::exchange(report_.silent, !answer) == !answer) return;
  }
  if (!answer) return tell(fmt::format("its MPS daemon {} does not answer", report().daemon_pid));
  tell("its MPS daemon answers again");
  look_for_faults();  // nobody could be asked meanwhile
}

void DomainKeeper::take_server(pid_t pid) {
  if (servers_.contains(pid)) return;
  auto pidfd = kernel_.pidfd_open(pid);
  if (!pidfd) return;
  auto watch = loop_->watch_readable(pidfd->get(), [this, pid] { server_ended(pid); });
  if (!watch) return;
  std::string start_time = start_time_of(pid);
  if (start_time.empty()) return;
  auto process = std::make_shared<const os::Fd>(std::move(*pidfd));
  servers_.emplace(pid, Server{process, std::move(*watch), user_of(pid), clock_.now()});
  {
    const std::lock_guard lock(mutex_);
    report_.servers.push_back(pid);
    // Clients that come from now on are this server's.
    std::erase_if(known_servers_, [](const KnownServer& each) { return each.ended.has_value(); });
    known_servers_.push_back({pid, std::move(start_time), std::move(process)});
  }
  callbacks_.on_server(pid);
}

void DomainKeeper::server_ended(pid_t pid) {
  const auto server = std::move(servers_.extract(pid).mapped());
  const auto domain = this->domain();
  {
    const std::lock_guard lock(mutex_);
    std::erase(report_.servers, pid);
    note_end(pid);
  }
  // The servers of a daemon that ends end, too.
  if (!domain || !domain->running()) return;
  {
    const std::lock_guard lock(mutex_);
    report_.state = DomainState::Restarting;
    ++report_.server_restarts;
  }
  callbacks_.on_clients_lost();
  next_drain_look_.cancel();
  try_again(clock_.now() - server.began, fmt::format("its MPS server {} has ended", pid),
            [this, user = server.user] { start_server(user); });
}

void DomainKeeper::start_server(uid_t user) {
  const auto domain = this->domain();
  if (!domain) return;
  const auto there = look();
  if (had_fault_ && !there) {
    return try_again(Nanoseconds(0), "its MPS daemon does not answer: " + to_string(there.error()),
                     [this, user] { start_server(user); });
  }
  // The daemon has ended by itself after a fault (renew()).
  if (had_fault_ && there->empty()) return renew_daemon();
  // A client that came meanwhile has had one started.
  const Status started = servers_.empty() ? domain->start_server(user) : Status{};
  if (!started) {
    return try_again(Nanoseconds(0), "its MPS server cannot be started: " + to_string(started.error()),
                     [this, user] { start_server(user); });
  }
  (void)look();
  set_state(DomainState::Serving);
  tell("serves again, with a new server");
}

/// Returns the user who asked for the server: the next one is to be of the same user.
uid_t DomainKeeper::user_of(pid_t pid) {
  const auto status = kernel_.read_file(os::proc_folder(pid) + "/status");
  return os::user_in(status.value_or("")).value_or(0);
}

// --- the rest
// -----------------------------------------------------------------------------------------------------

void DomainKeeper::bound_logs() {
  const auto domain = this->domain();
  if (!domain) return;
  const Status bounded = domain->bound_logs();
  if (bounded) return;
  tell(to_string(bounded.error()));
  // A look would fail the next time as well.
  log_looks_.cancel();
}

void DomainKeeper::set_state(DomainState state) {
  has_fallen_ = has_fallen_ && state == DomainState::Draining;
  const std::lock_guard lock(mutex_);
  report_.state = state;
}

void DomainKeeper::tell(const std::string& news) {
  {
    const std::lock_guard lock(mutex_);
    report_.news = news;
  }
  callbacks_.on_news(news);
}

DomainReport DomainKeeper::report() const {
  const std::lock_guard lock(mutex_);
  return report_;
}

bool DomainKeeper::is_server(pid_t pid) const {
  const auto known = known_server(pid);
  if (!known) return false;
  if (!known->ended && lives(*known->process)) return true;
  const std::string start_time = start_time_of(pid);
  // Nobody has the number, or somebody else.
  if (!start_time.empty() && start_time != known->start_time) return false;
  return !known->ended || clock_.now() - *known->ended < options_.fault_lasts;
}

std::optional<DomainKeeper::KnownServer> DomainKeeper::known_server(pid_t pid) const {
  const std::lock_guard lock(mutex_);
  const auto found = std::ranges::find(known_servers_, pid, &KnownServer::pid);
  return found == known_servers_.end() ? std::nullopt : std::optional(*found);
}

/// The descriptor keeps the number from being another process's.
bool DomainKeeper::lives(const os::Fd& process) const {
  const int number = process.get();
  const auto ended = kernel_.poll(std::span(&number, 1), Milliseconds(0));
  return ended && ended->empty();
}

/// Called with the mutex held.
void DomainKeeper::note_end(pid_t pid) {
  for (KnownServer& each : known_servers_) {
    if (each.pid == pid && !each.ended) each.ended = clock_.now();
  }
}

std::string DomainKeeper::start_time_of(pid_t pid) const {
  const auto stat = kernel_.read_file(os::proc_folder(pid) + "/stat");
  return stat ? std::string(os::start_time(*stat)) : std::string();
}

std::shared_ptr<Domain> DomainKeeper::domain() const {
  const std::lock_guard lock(mutex_);
  return domain_;
}

}  // namespace firebreak::mps
