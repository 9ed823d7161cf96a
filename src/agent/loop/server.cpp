// SPDX-License-Identifier: Apache-2.0
#include "agent/loop/server.h"

#include <fmt/format.h>
#include <spdlog/spdlog.h>
#include <unistd.h>

#include <algorithm>

#include "ground/os/closer.h"
#include "ground/os/descriptors.h"
#include "ground/os/fd.h"
#include "ground/os/processes.h"

namespace firebreak::agent {

namespace {

/// Pauses for descriptors that are under way: who reads takes microseconds.
constexpr Milliseconds held_pause{2};
constexpr Milliseconds no_descriptors_pause{100};
/// One lstat() each.
constexpr Milliseconds between_path_looks{1000};
constexpr Milliseconds between_words{1000};

/// A file of a file system in user space would keep whatever program we start, which closes it.
bool may_be_kept(const os::Fd& descriptor) {
  return os::kind_of(descriptor.get()) != os::DescriptorKind::Other;
}

std::string_view text_of(const os::Message& message) {
  return {reinterpret_cast<const char*>(message.bytes.data()), message.bytes.size()};
}

}  // namespace

void Connection::has_adopted(pid_t pid, std::string start_time) {
  std::erase_if(adopted_, [pid](const auto& each) { return each.first == pid; });
  if (adopted_.size() == most_adopted) adopted_.pop_front();
  adopted_.emplace_back(pid, std::move(start_time));
}

bool Connection::adopted(pid_t pid, std::string_view start_time) const {
  const auto found = std::ranges::find_if(adopted_, [pid](const auto& each) { return each.first == pid; });
  return found != adopted_.end() && (start_time.empty() || found->second == start_time);
}

bool Connection::has_its_peer(os::Kernel& kernel) const {
  if (entrance_ == Entrance::Operators) return true;
  const int number = process_.get();
  const auto ended = number < 0 ? Result<std::vector<std::size_t>>(std::vector<std::size_t>{0})
                                : kernel.poll(std::span(&number, 1), Milliseconds(0));
  if (!ended || !ended->empty()) return false;
  const auto status = kernel.read_file(os::proc_folder(peer_.pid) + "/status");
  return status && os::is_of_user_alone(*status, peer_.uid);
}

void Connection::answer(const abi::Message& message, int descriptor) {
  std::string text = abi::encode(message, number_);
  if (text.size() > abi::wire_bytes_max)
    text = abi::encode(abi::Refused{"the answer is longer than a message can be"}, number_);
  server_.post(*this, std::move(text), descriptor);
}

void Connection::send_encoded(std::string text) { server_.post(*this, std::move(text), -1); }

void Connection::send(const abi::Message& message, int descriptor) {
  server_.post(*this, abi::encode(message), descriptor);
}

Status Server::listen(const Sockets& sockets) {
  if (auto opened = open_door(sockets.operators, Entrance::Operators, sockets.operator_group); !opened)
    return opened;
  if (!sockets.tenants.empty()) {
    if (auto opened = open_door(sockets.tenants, Entrance::Tenants, sockets.tenant_group); !opened)
      return opened;
  }
  if (!sockets.observers.empty()) {
    if (auto opened = open_door(sockets.observers, Entrance::Observers, sockets.observer_group); !opened)
      return opened;
  }
  auto looks = loop_.every(between_path_looks, [this] {
    for (const auto& door : doors_) look_after_path(*door);
    forget_times();
  });
  if (!looks) return propagate(looks);
  path_looks_ = std::move(*looks);
  return {};
}

Status Server::open_door(const std::string& path, Entrance entrance, os::SocketGroup group) {
  auto listener = os::Listener::listen(path, os::SocketAccess::Group, group);
  if (!listener) return propagate(listener);
  doors_.push_back(std::make_unique<Door>(Door{entrance, group, std::move(*listener)}));
  return watch_door(*doors_.back());
}

/// Whoever is connected does not need it; whoever comes does.
void Server::look_after_path(Door& door) {
  if (door.listener.is_there()) return;
  auto again = os::Listener::listen(door.listener.path(), os::SocketAccess::Group, door.group);
  if (again) {
    door.watch.cancel();
    door.spare.reset();
    door.listener = std::move(*again);
    spdlog::warn("{} was removed, and is there again", door.listener.path());
  }
  const Status listens = again ? watch_door(door) : Status(propagate(again));
  if (!listens && !door.has_lost_path)
    spdlog::error("{} was removed, and cannot be made again: {}", door.listener.path(),
                  to_string(listens.error()));
  door.has_lost_path = !listens;
}

Status Server::watch_door(Door& door) {
  if (auto spare = os::duplicate(door.listener.fd().get())) door.spare = std::move(*spare);
  auto watch = loop_.watch_readable(door.listener.fd().get(), [this, &door] { accept_one(door); });
  if (!watch) return propagate(watch);
  door.watch = std::move(*watch);
  return {};
}

Connection* Server::find(std::uint64_t id) {
  const auto found = connections_.find(id);
  return found == connections_.end() ? nullptr : found->second.get();
}

void Server::handle(const Asker& asker, const std::function<void(Connection&)>& callback) {
  Connection* connection = find(asker.connection);
  if (connection == nullptr) return;
  const std::uint64_t handled = std::exchange(connection->number_, asker.number);
  callback(*connection);
  connection->number_ = handled;
}

void Server::accept_one(Door& door) {
  const Monotonic begin = now();
  auto socket = door.listener.accept(Milliseconds(0));
  if (!socket && socket.error().code == ErrorCode::ResourceExhausted) return turn_away(door);
  if (!socket) return;
  // Messages that have come and nobody has read are closed with it.
  socket->close_by(std::make_shared<os::Closer>());
  const auto peer = socket->peer_credentials();
  if (!peer) return;
  if (const auto refused = why_not(door, *peer)) {
    refuse(door, *peer, *socket, *refused);
  } else {
    let_in(door, *peer, std::move(*socket));
  }
  spend(door.entrance, peer->uid, begin);
}

void Server::let_in(Door& door, const os::PeerCredentials& peer, os::Socket socket) {
  const std::uint64_t id = next_id_++;
  auto connection = std::make_unique<Connection>(*this, id, door.entrance, std::move(socket), peer);
  if (auto process = connection->socket_.peer_process()) connection->process_ = std::move(*process);
  if (const Status watched = watch(*connection); !watched) {
    spdlog::error("cannot wait for process {}: {}", peer.pid, watched.error().message);
    return;
  }
  connections_.emplace(id, std::move(connection));
  ++connections_of_user_[{door.entrance, peer.uid}];
}

/// Refuses as cheaply as that goes: whoever comes again and again costs this each time. The log has a line a
/// second for one user.
void Server::refuse(Door& door, const os::PeerCredentials& peer, os::Socket& socket,
                    const abi::Refused& why) {
  const std::string refusal = abi::encode(why);
  (void)socket.send(std::as_bytes(std::span(refusal)), {}, Milliseconds(0));
  socket.hang_up_for_good();
  UserTime* const its = time_of(door.entrance, peer.uid);
  const bool is_over = its != nullptr && its->allowance.wait(now()) > Nanoseconds(0);
  if (is_over && ++door.refused % room_.refusals_at_once == 0) pause(door, room_.refusals_pause);
  if (its != nullptr && now() < its->next_word) {
    ++its->turned_away_silently;
    return;
  }
  const std::size_t others = its == nullptr ? 0 : std::exchange(its->turned_away_silently, 0);
  spdlog::warn("turned away process {} of user {}: {}{}", peer.pid, peer.uid, why.reason,
               others == 0 ? "" : fmt::format(" ({} more were before it)", others));
  if (its != nullptr) its->next_word = now() + between_words;
}

Status Server::watch(Connection& connection) {
  auto watch = loop_.watch(
      connection.socket_.fd().get(), [this, id = connection.id()] { serve(id); },
      [this, id = connection.id()] { flush(id); });
  if (!watch) return propagate(watch);
  connection.watch_ = std::move(*watch);
  return {};
}

/// Operators always find room, and no user takes all of it.
std::optional<abi::Refused> Server::why_not(const Door& door, const os::PeerCredentials& peer) const {
  if (!door.group && peer.uid != 0 && peer.uid != ::geteuid())
    return abi::Refused{"the agent serves root and its own user alone"};
  const bool is_operator = door.entrance == Entrance::Operators;
  const auto its = connections_of_user_.find({door.entrance, peer.uid});
  if (!is_operator && its != connections_of_user_.end() && its->second >= room_.of_user)
    return abi::Refused{fmt::format("user {} has {} connections to the agent already", peer.uid, its->second),
                        true};
  const std::size_t room = is_operator ? room_.most : room_.most - room_.operators_reserve;
  if (connections_.size() >= room) return abi::Refused{"the agent has too many connections", true};
  return std::nullopt;
}

/// Turns a peer away when no descriptor is left. A peer that waits to be accepted would wake us for ever.
void Server::turn_away(Door& door) {
  door.spare.reset();
  {
    auto socket = door.listener.accept(Milliseconds(0));
    const std::string refusal = abi::encode(abi::Refused{"the agent has no descriptor left", true});
    if (socket) {
      socket->close_by(std::make_shared<os::Closer>());
      (void)socket->send(std::as_bytes(std::span(refusal)), {}, Milliseconds(0));
      socket->hang_up_for_good();
    }
  }
  spdlog::warn("turned away a connection: no descriptor is left");
  if (auto spare = os::duplicate(door.listener.fd().get())) {
    door.spare = std::move(*spare);
    return;
  }
  pause(door, no_descriptors_pause);
}

void Server::pause(Door& door, Nanoseconds time) {
  door.watch.cancel();
  door.waking = loop_.after_or_now(time, [this, &door] { (void)watch_door(door); });
}

// --- a user's share of the loop's time
// ---------------------------------------------------------------------------------------------------

Server::UserTime* Server::time_of(Entrance entrance, uid_t user) {
  if (room_.clock == nullptr || entrance == Entrance::Operators) return nullptr;
  return &time_of_users_.try_emplace(user, UserTime{Allowance(room_.time_of_user)}).first->second;
}

void Server::spend(Entrance entrance, uid_t user, Monotonic begin) {
  UserTime* const its = time_of(entrance, user);
  if (its != nullptr) its->allowance.spend(now() - begin, now());
}

/// Serves a connection. Those of a user who has taken its share wait for their turn, one after the other: a
/// user of many gets no more by them, and none is left out.
void Server::serve(std::uint64_t id) {
  Connection* const connection = find(id);
  if (connection == nullptr) return;
  UserTime* const its = time_of(connection->entrance_, connection->peer_.uid);
  const bool waits = its != nullptr && (its->next || its->allowance.wait(now()) > Nanoseconds(0));
  return waits ? rest(*connection, *its) : serve_now(*connection);
}

void Server::serve_now(Connection& connection) {
  const Monotonic begin = now();
  const Entrance entrance = connection.entrance_;
  const uid_t user = connection.peer_.uid;
  receive_one(connection.id());  // this may close it
  spend(entrance, user, begin);
}

void Server::rest(Connection& connection, UserTime& its) {
  connection.watch_.cancel();
  its.resting.push_back(connection.id());
  if (!its.next) await_turn(its);
}

void Server::await_turn(UserTime& its) {
  its.next = loop_.after_or_now(its.allowance.wait(now()), [this, &its] { serve_first_of(its); });
}

/// One message of one connection a turn of the loop: everybody else is served in between.
void Server::serve_first_of(UserTime& its) {
  its.next.cancel();
  if (its.resting.empty()) return;
  if (its.allowance.wait(now()) > Nanoseconds(0)) return await_turn(its);
  const std::uint64_t id = its.resting.front();
  its.resting.pop_front();
  Connection* const connection = find(id);
  if (connection != nullptr && !connection->closing_) {
    if (const Status watched = watch(*connection); watched) {
      flush(id);
      serve_now(*connection);
    } else {
      give_up(*connection, watched.error());
    }
  }
  if (!its.resting.empty()) await_turn(its);
}

/// A user is forgotten only with its whole share again: otherwise it had that by coming anew.
void Server::forget_times() {
  std::erase_if(time_of_users_, [this](const auto& each) {
    const auto& [user, its] = each;
    return its.resting.empty() && its.allowance.is_whole(now()) && its.words.is_whole(now()) &&
           !connections_of_user_.contains({Entrance::Tenants, user});
  });
}

std::optional<std::size_t> Server::may_log(const Connection& connection) {
  UserTime* const its = time_of(connection.entrance_, connection.peer_.uid);
  return its == nullptr ? std::optional<std::size_t>(0) : its->words.take(now());
}

/// Complains once a second about one user's mistakes, whatever it sends.
void Server::complain(const Connection& connection, const std::string& what) {
  UserTime* const its = time_of(connection.entrance_, connection.peer_.uid);
  if (its != nullptr && now() < its->next_complaint) {
    ++its->not_complained_of;
    return;
  }
  const std::size_t others = its == nullptr ? 0 : std::exchange(its->not_complained_of, 0);
  spdlog::warn(
      "process {} sent {}{}", connection.peer_.pid, what,
      others == 0 ? "" : fmt::format(" ({} more of user {} were before it)", others, connection.peer_.uid));
  if (its != nullptr) its->next_complaint = now() + between_words;
}

void Server::receive_one(std::uint64_t id) {
  Connection* connection = find(id);
  if (connection == nullptr) return;
  auto received = connection->socket_.receive(Milliseconds(0));
  if (!received) {
    if (received.error().code != ErrorCode::Timeout) close(id);
    return;
  }
  auto letter = abi::decode_letter(text_of(*received));
  connection->number_ = letter ? letter->number : abi::number_in(text_of(*received));
  connection->numbers_ |= connection->number_ != 0;
  if (!letter) {
    complain(*connection, letter.error().message);
    connection->answer(abi::Refused{letter.error().message});
    close(id);
    return;
  }
  if (!std::ranges::all_of(received->descriptors, may_be_kept)) {
    complain(*connection, "a descriptor that is neither memory, a device nor a socket");
    return connection->answer(abi::Refused{"that descriptor is neither memory, a device nor a socket"});
  }
  handler_.on_message(*connection, std::move(letter->message), std::move(received->descriptors));
}

void Server::post(Connection& connection, std::string text, int descriptor) {
  if (connection.closing_) return;
  go_on(connection, connection.outbox_.put(connection.socket_, std::move(text), descriptor));
}

void Server::flush(std::uint64_t id) {
  Connection* connection = find(id);
  if (connection != nullptr && !connection->closing_)
    go_on(*connection, connection->outbox_.flush(connection->socket_));
}

void Server::go_on(Connection& connection, const Result<Outbox::State>& state) {
  if (!state) return give_up(connection, state.error());
  connection.watch_.expect_writable(*state == Outbox::State::Full);
  if (*state == Outbox::State::Held)
    connection.retry_ = loop_.after_or_now(held_pause, [this, id = connection.id()] { flush(id); });
}

/// The connection is not closed from here: the sender is in the midst of something.
void Server::give_up(Connection& connection, const Error& why) {
  spdlog::warn("the connection of process {} is closed: {}", connection.peer().pid, to_string(why));
  connection.watch_.cancel();
  connection.closing_ = loop_.after_or_now({}, [this, id = connection.id()] { close(id); });
}

void Server::close(std::uint64_t id) {
  const auto found = connections_.find(id);
  if (found == connections_.end()) return;
  handler_.on_closed(*found->second);
  const auto its = connections_of_user_.find({found->second->entrance_, found->second->peer_.uid});
  if (--its->second == 0) connections_of_user_.erase(its);
  connections_.erase(id);
}

}  // namespace firebreak::agent
