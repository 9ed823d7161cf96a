// SPDX-License-Identifier: Apache-2.0
#include "softgpu/mps/server.h"

#include <fmt/core.h>

#include <algorithm>
#include <chrono>
#include <cstdlib>
#include <cstring>
#include <iterator>
#include <sstream>
#include <thread>
#include <utility>

#include "ground/os/self.h"
#include "softgpu/machine/fault_delivery.h"

namespace firebreak::softgpu::mps {

namespace {

constexpr Milliseconds io_timeout(1'000);
// NVIDIA's waits for ever for a client that does not answer; everything here is bounded.
constexpr Milliseconds terminate_timeout(2'000);
constexpr Milliseconds between_looks(5);

}  // namespace

Result<std::unique_ptr<Server>> Server::create(os::Socket daemon) {
  auto loop = os::EventLoop::create();
  if (!loop) return propagate(loop);
  auto gpu = SharedGpu::open_own();
  if (!gpu) return propagate(gpu);
  if (Status entered = (*gpu)->enter(); !entered) return propagate(entered);
  std::unique_ptr<Server> server(new Server(std::move(*loop), std::move(*gpu), std::move(daemon)));
  auto watch = server->loop_->watch_readable(server->daemon_.fd().get(),
                                             [raw = server.get()] { raw->serve_daemon(); });
  if (!watch) return propagate(watch);
  server->daemon_watch_ = std::move(*watch);
  return server;
}

Server::Server(std::unique_ptr<os::EventLoop> loop, std::shared_ptr<SharedGpu> gpu, os::Socket daemon)
    : loop_(std::move(loop)),
      gpu_(std::move(gpu)),
      daemon_(std::move(daemon)),
      log_("server.log", "Server"),
      speed_(speed_from_environment()) {}

void Server::run() {
  log_.write("Server has started");
  loop_->run();
  log_.write("Exiting");
}

void Server::serve_daemon() {
  auto received = receive_request(daemon_, Milliseconds(0));
  if (!received) return end();  // the daemon is gone
  if (received->request.kind == RequestKind::Attach) {
    attach(std::move(received->descriptors));
    return;
  }
  static_cast<void>(send_text(daemon_, answer(received->request.text), io_timeout));
}

void Server::attach(std::vector<os::Fd> descriptors) {
  if (descriptors.size() != 3) return;  // the connection, UVM, the resource manager
  os::Socket connection(std::move(descriptors[0]));
  auto rm = RmClient::from(descriptors[2].get());
  // The client's own lives as long as somebody else than we has it.
  auto uvm = os::reopen(descriptors[1].get());
  descriptors.clear();
  if (!rm || !uvm) return;
  const auto peer = connection.peer_credentials();
  if (!peer) return;
  const pid_t pid = peer->pid;
  let_earlier_go(pid);
  // This stands before the answer: once it has that, a client may work and die, and its death must not be
  // missed.
  auto pidfd = kernel_.pidfd_open(pid);
  if (!pidfd) return;
  auto exit_watch = loop_->watch_readable(pidfd->get(), [this, pid] { client_left(pid); });
  // A process that becomes another program (exec) lives on, but no longer as a client.
  auto hang_up_watch = loop_->watch_readable(connection.fd().get(), [this, pid] { hear(pid); });
  if (!exit_watch || !hang_up_watch) return;
  const AttachAnswer reply = admit(pid).value_or(AttachAnswer{CUDA_ERROR_MPS_SERVER_NOT_READY, 0});
  const bool admitted = reply.result == CUDA_SUCCESS;
  static_cast<void>(send_attach_answer(connection, reply, admitted ? domain_->fd() : -1, io_timeout));
  if (!admitted) return;
  rm->serve_by(os::own_pid());
  log_.write(fmt::format("Client {{PID: {}, Context ID: 1}} connected", pid));
  if (clients_.empty() && orphans_.empty()) start_looking();
  clients_.insert_or_assign(
      pid, Client{domain_, reply.slot, std::move(connection), std::move(*rm), std::move(*uvm),
                  std::move(*pidfd), std::move(*exit_watch), std::move(*hang_up_watch), false});
}

/// The same process was this as another program, or as an instance of its driver that it has given back. One
/// that a fault has hit, and that is still there, is waited for as any client is.
void Server::let_earlier_go(pid_t pid) {
  const auto found = clients_.find(pid);
  if (found == clients_.end()) return;
  if (!found->second.domain->healthy() && take_messages(found->second)) return;
  // The client would take the end of its connection for ours without a word.
  static_cast<void>(send_text(found->second.connection, "goodbye", io_timeout));
  client_left(pid);
}

Result<AttachAnswer> Server::admit(pid_t pid) {
  if (quitting_ || is_handling_fault()) return AttachAnswer{CUDA_ERROR_MPS_SERVER_NOT_READY, 0};
  if (!domain_ || !domain_->healthy()) {
    auto next = Domain::create(os::own_pid());
    if (!next) return propagate(next);
    domain_ = std::move(*next);
    if (spoiled_) domain_->mark_spoiled();
  }
  const auto slot = domain_->join(pid);
  if (!slot) return AttachAnswer{CUDA_ERROR_MPS_MAX_CLIENTS_REACHED, 0};
  if (domain_->is_held()) domain_->mark_newcomer(*slot);
  return AttachAnswer{CUDA_SUCCESS, *slot};
}

void Server::hear(pid_t pid) {
  const auto found = clients_.find(pid);
  if (found != clients_.end() && !take_messages(found->second)) client_left(pid);
}

/// False: the client has hung up.
bool Server::take_messages(Client& client) {
  for (;;) {
    const auto received = receive_request(client.connection, Milliseconds(0));
    if (!received) return received.error().code == ErrorCode::Timeout;
    if (received->request.kind != RequestKind::HostMemory || received->descriptors.size() != 1) continue;
    const int file = received->descriptors.front().get();
    const auto size_bytes = os::file_size(file);
    auto mapping = os::Mapping::of_file(file, size_bytes.value_or(0), os::Protection::ReadWrite);
    client.host_memory.push_back(mapping ? std::move(*mapping) : os::Mapping());
  }
}

void Server::client_left(pid_t pid) {
  const auto found = clients_.find(pid);
  if (found == clients_.end()) return;
  Client client = std::move(found->second);
  (void)take_messages(client);  // what it said last
  clients_.erase(found);
  // The spelling is NVIDIA's.
  log_.write(fmt::format(
      "Server failed to recevie command with status 806, assuming client {{PID: {}, Context ID: 1}} exit",
      pid));
  if (holds_its_domain(client)) end_hold(*gpu_, *client.domain, speed_);
  leave_held_domain(*gpu_, *client.domain, client.slot, pid, process_name(pid));
  const bool is_kept = os::is_locked_elsewhere(client.uvm.get()).value_or(false);
  if (is_kept && (works_on(client) || may_begin(client))) {
    let_work_end(pid, std::move(client));
  } else {
    die(pid, client);
  }
  if (clients_.empty() && orphans_.empty()) looking_.cancel();
  end_when_idle();
}

/// The client ended by an exception of its own.
bool Server::holds_its_domain(const Client& client) {
  const auto hold = client.domain->hold();
  return hold && hold->faulter_slot == client.slot;
}

/// The fault of a held domain comes from here: the server outlives all who could be killed meanwhile.
void Server::look_for_end_of_hold() {
  if (domain_ && domain_->is_held() && domain_->is_hold_over()) end_hold(*gpu_, *domain_, speed_);
}

/// A terminated client's channels were taken off the GPU, whatever its streams still count as queued.
bool Server::has_channels(const Client& client) { return !client.terminated && client.domain->healthy(); }

bool Server::works_on(const Client& client) const {
  return has_channels(client) && client.rm.is_busy() && !gpu_->device_fault();
}

/// It died between two kernels: the next one begins nevertheless.
bool Server::may_begin(const Client& client) { return has_channels(client) && client.rm.has_waiting_work(); }

/// A kernel runs to its end though its process is gone, as long as its address space is there.
void Server::let_work_end(pid_t pid, Client client) {
  const auto left = client.rm.orphaned_work();
  gpu_->keep_listed(pid);
  auto stores = stores_of(kernel_, client.rm);
  orphans_.push_back({pid, std::move(client), {}, std::move(stores)});
  Orphan& orphan = orphans_.back();
  if (!left) return;
  auto timer = loop_->after(*left, [&orphan] { end_work(orphan.client); });
  if (timer) orphan.end_of_work = std::move(*timer);
}

/// Words that waited behind its kernels come now: the real GPU writes them, too.
void Server::end_work(Client& client) {
  for (const FileWord& word : client.rm.queued_words()) {
    if (word.place.file >= client.host_memory.size()) continue;
    const std::span<std::byte> file = client.host_memory[word.place.file].bytes();
    const bool fits = word.place.offset_bytes + word.size_bytes <= file.size();
    if (fits) std::memcpy(file.data() + word.place.offset_bytes, &word.value, word.size_bytes);
  }
  client.rm.end_all_work();
}

void Server::look_at_orphans() {
  for (auto orphan = orphans_.begin(); orphan != orphans_.end();) {
    const bool is_kept = os::is_locked_elsewhere(orphan->client.uvm.get()).value_or(false);
    if (is_kept && works_on(orphan->client)) store_again(orphan->stores);
    if (!is_kept) {
      gpu_->forget(orphan->pid);
      die(orphan->pid, orphan->client);
    }
    orphan = is_kept ? std::next(orphan) : orphans_.erase(orphan);
  }
  if (clients_.empty() && orphans_.empty()) looking_.cancel();
  end_when_idle();
}

/// Its address space goes: under a kernel, that is a fault.
void Server::die(pid_t pid, Client& client) {
  if (works_on(client)) {
    FaultReport report;
    report.cause = FaultCause::ClientDied;
    report.slot = client.slot;
    report.pid = pid;
    report.process_name = "<unknown>";
    const bool is_first = deliver_fault(*gpu_, *client.domain, nullptr, report, speed_);
    // The server comes back in order beside a client that the fault ends too (docs/how/domains.md).
    if (is_first && clients_.empty()) spoiled_ = true;
  }
  if (!client.domain->healthy()) client.rm.end_all_work();
  look_for_fault();
  client.domain->leave(client.slot);
  log_.write(fmt::format("Client process {} disconnected", pid));
}

void Server::start_looking() {
  auto timer = loop_->every(between_looks, [this] {
    look_for_end_of_hold();
    look_for_fault();
    look_at_orphans();
  });
  if (timer) looking_ = std::move(*timer);
}

/// NVIDIA's server hears of a fault from the GPU, this one looks for it.
void Server::look_for_fault() {
  if (!domain_ || domain_->healthy() || std::exchange(handled_, domain_) == domain_) return;
  const auto fault = domain_->fault_of(0);
  const std::int64_t left_ns = fault ? fault->mps_log_due_ns - now_ns() : 0;
  auto timer = loop_->after(Nanoseconds(std::max<std::int64_t>(left_ns, 0)),
                            [this] { log_.write("Server is handling a fatal GPU error."); });
  if (timer) handling_ = std::move(*timer);
}

std::string Server::answer(const std::string& command) {
  std::istringstream words(command);
  std::string verb;
  words >> verb;
  if (verb == "get_client_list") return client_list();
  if (verb == "get_server_status") return is_in_fault() ? "FAULT\n" : "ACTIVE\n";
  if (verb == "terminate_client") {
    pid_t pid = 0;
    words >> pid;
    return terminate_client(pid);
  }
  if (verb == "quit") {
    double seconds = 0;
    words >> seconds;
    begin_quit(seconds);
    return {};
  }
  if (verb == "shutdown_server") {
    std::string option;
    words >> option;
    begin_shutdown(option == "-f");
    return {};
  }
  return "Unknown command: " + command;
}

/// This holds as long as clients are there that a fault has hit.
bool Server::is_in_fault() const {
  return std::ranges::any_of(clients_, [](const auto& entry) {
    const Client& client = entry.second;
    return !client.domain->healthy() && !client.domain->is_newcomer(client.slot);
  });
}

/// NVIDIA's server refuses new clients until the last one that was hit has left (docs/how/who-did-it.md,
/// "the restart").
bool Server::is_handling_fault() const {
  const auto fault = domain_ ? domain_->fault_of(0) : std::nullopt;
  if (!fault || domain_->healthy()) return false;
  return is_in_fault() || now_ns() < std::max(fault->co_client_error_due_ns, fault->mps_log_due_ns);
}

std::string Server::client_list() const {
  std::string list;
  for (const auto& [pid, client] : clients_) {
    if (!client.terminated) list += std::to_string(pid) + "\n";
  }
  return list;
}

std::string Server::terminate_client(pid_t pid) {
  const auto found = clients_.find(pid);
  if (found == clients_.end() || found->second.terminated) return "Invalid process\n";
  Client& client = found->second;
  client.domain->terminate(client.slot);
  gpu_->stall_until(now_ns() + delay_ns(terminate_stall_ms, speed_));
  const auto deadline = std::chrono::steady_clock::now() + terminate_timeout;
  while (!client.domain->termination_acknowledged(client.slot)) {
    if (std::chrono::steady_clock::now() > deadline) return "Error: the client does not answer\n";
    std::this_thread::sleep_for(std::chrono::microseconds(200));
  }
  client.terminated = true;
  return {};
}

void Server::begin_quit(double wait_seconds) {
  quitting_ = true;
  auto timer =
      loop_->after(std::chrono::duration_cast<Nanoseconds>(std::chrono::duration<double>(wait_seconds)),
                   [this] { end(); });
  if (timer) {
    quit_timer_ = std::move(*timer);
  } else {
    end();
  }
  // This goes through the loop, so that the answer to this command goes out first.
  loop_->post([this] { end_when_idle(); });
}

/// NVIDIA's manual has it so: nobody new comes in, and it ends with its last client, or at once.
void Server::begin_shutdown(bool at_once) {
  quitting_ = true;
  loop_->post([this, at_once] { at_once ? end() : end_when_idle(); });
}

void Server::end_when_idle() {
  if (!clients_.empty() || !orphans_.empty()) return;
  // NVIDIA's daemon starts another server once a client has failed.
  const bool has_failed_one = domain_ && domain_->is_spoiled();
  if (quitting_ || has_failed_one) end();
}

void Server::end() {
  for (const auto& [pid, client] : clients_) client.domain->mark_server_gone();
  gpu_->wake_everybody();
  loop_->stop();
}

}  // namespace firebreak::softgpu::mps
