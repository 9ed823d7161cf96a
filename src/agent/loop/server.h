// SPDX-License-Identifier: Apache-2.0
/// The agent's socket: connections, whole messages in and out. Nothing that a peer sends or leaves undone
/// blocks it.
#pragma once

#include <cstdint>
#include <deque>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "agent/loop/allowance.h"
#include "agent/loop/outbox.h"
#include "agent/loop/rights.h"
#include "agent/loop/word_allowance.h"
#include "ground/os/event_loop.h"
#include "ground/os/kernel.h"
#include "ground/os/socket.h"
#include "shared/abi/wire.h"

namespace firebreak::agent {

class Server;

/// The peer for whom an answer is that comes later.
struct Asker {
  std::uint64_t connection = 0;
  std::uint64_t number = 0;  ///< number of the request
};

/// The descriptors of a request that may have to wait.
using Descriptors = std::shared_ptr<std::vector<os::Fd>>;

/// One peer. Lives until it hangs up, sends nonsense, or does not read what it is sent.
class Connection {
 public:
  Connection(Server& server, std::uint64_t id, Entrance entrance, os::Socket socket, os::PeerCredentials peer)
      : server_(server),
        id_(id),
        entrance_(entrance),
        socket_(std::move(socket)),
        peer_(peer),
        outbox_(entrance == Entrance::Tenants ? tenants_descriptors_max : Outbox::messages_max) {}

  Connection(const Connection&) = delete;
  Connection& operator=(const Connection&) = delete;
  /// The peer sees the end at once; the descriptor is closed a moment later.
  ~Connection() { socket_.hang_up_for_good(); }

  std::uint64_t id() const { return id_; }
  const os::PeerCredentials& peer() const { return peer_; }
  /// Returns who asks here (agent/loop/rights.h).
  Asking asking() const { return {entrance_, peer_.uid, tenant_}; }
  /// The first tenant that a tenants' connection names is the only one that it may name.
  void bind_to(std::string_view tenant) {
    if (entrance_ == Entrance::Tenants && tenant_.empty()) tenant_ = tenant;
  }
  /// True on a tenants' connection when the process that opened it lives, and is its user's alone. A child
  /// may have the connection after it, its number may be another's, and it may have become a program of
  /// another user's.
  bool has_its_peer(os::Kernel& kernel) const;
  /// A process that was started by this peer: what it writes is passed on by it. Of so many, the last ones.
  void has_adopted(pid_t pid, std::string start_time);
  /// `start_time`: of who has the number now; empty: nobody, and what it wrote before its end may still come.
  bool adopted(pid_t pid, std::string_view start_time) const;
  /// Returns the asker of the request that is being handled.
  Asker asker() const { return {id_, number_}; }
  /// True when its requests carry numbers, as those of programs do that know this agent's ways.
  bool numbers() const { return numbers_; }
  /// Answers the request that is being handled. A descriptor stays the caller's, here and below.
  void answer(const abi::Message& message, int descriptor = -1);
  /// Unasked. Who does not read loses its connection, and never a message before that.
  void send(const abi::Message& message, int descriptor = -1);
  /// The same of what is encoded already, for many.
  void send_encoded(std::string text);

 private:
  friend class Server;
  /// Answers with a descriptor that a tenants' connection may leave unread; libfirebreak asks one at a time.
  static constexpr std::size_t tenants_descriptors_max = 4;
  static constexpr std::size_t most_adopted = 64;

  Server& server_;
  std::uint64_t id_;
  Entrance entrance_;
  std::string tenant_;
  std::deque<std::pair<pid_t, std::string>> adopted_;  ///< with their start times
  os::Socket socket_;
  os::Fd process_;  ///< the peer's; none: it was gone already
  os::PeerCredentials peer_;
  std::uint64_t number_ = 0;
  bool numbers_ = false;
  Outbox outbox_;
  os::Watch watch_;
  os::Watch retry_;
  os::Watch closing_;
};

/// Takes what the server tells, on the loop's thread.
class ServerHandler {
 public:
  virtual ~ServerHandler() = default;
  virtual void on_message(Connection& connection, abi::Message message, std::vector<os::Fd> descriptors) = 0;
  /// The connection is gone after this call.
  virtual void on_closed(Connection& connection) = 0;
};

/// The places where the agent is reached.
struct Sockets {
  std::string operators;
  os::SocketGroup operator_group = {};  ///< group whose members are operators, besides root and our user
  std::string tenants = {};             ///< empty: they come to the operators' one
  os::SocketGroup tenant_group = {};    ///< group whose members may run tenants, besides them
  std::string observers = {};           ///< empty: there is none for them
  os::SocketGroup observer_group = {};  ///< group whose members are observers, besides them

  /// Returns where a tenant's processes are told to come.
  const std::string& of_tenants() const { return tenants.empty() ? operators : tenants; }
};

/// How many connections there can be at once.
struct ServerRoom {
  /// Limits of connections. Each tenant has up to five: two processes, who started each, and who keeps the
  /// pair.
  std::size_t most = 4096;
  std::size_t operators_reserve = 256;  ///< connections that are for operators alone
  std::size_t of_user = 1024;           ///< connections of one user, at the other sockets
  /// Clock of the time that a user may take there; none: as much as it likes.
  const Clock* clock = nullptr;
  AllowanceLimits time_of_user = {};
  /// Number of refusals after which the door is closed for a while: refusing as fast as they come would be
  /// most of our time. Others who come then wait behind them, a tenth of a second at most where all that may
  /// wait there (512) are to be refused.
  std::size_t refusals_at_once = 16;
  Nanoseconds refusals_pause = std::chrono::milliseconds(3);
};

/// Belongs to the loop's thread.
class Server {
 public:
  /// Makes a server that both outlive. Nobody is connected before listen().
  Server(os::EventLoop& loop, ServerHandler& handler, const ServerRoom& room = {})
      : loop_(loop), handler_(handler), room_(room) {}

  /// Listens there (mode 0660), and makes each again when somebody has removed it. Where a socket has no
  /// group of its own, peers of another user than ours and root are turned away. Once.
  Status listen(const Sockets& sockets);

  /// Null when the connection is gone.
  Connection* find(std::uint64_t id);
  /// Whether a line of the log may tell of what is asked there; and how many before it were left out. Of one
  /// user there are so many (word_allowance.h), and of operators all.
  std::optional<std::size_t> may_log(const Connection& connection);
  /// Calls back as if the earlier request were handled now, if who asked is still there.
  void handle(const Asker& asker, const std::function<void(Connection&)>& callback);
  void answer(const Asker& asker, const abi::Message& message) {
    handle(asker, [&message](Connection& connection) { connection.answer(message); });
  }
  /// The handler is told. Not from inside of a call for that connection.
  void close(std::uint64_t id);

 private:
  friend class Connection;
  struct Door {
    Entrance entrance = Entrance::Operators;
    os::SocketGroup group;
    os::Listener listener;
    os::Watch watch = {};
    os::Fd spare = {};      ///< given up for who is told that there is none left
    os::Watch waking = {};  ///< alarm while nobody is accepted
    bool has_lost_path = false;
    std::size_t refused = 0;  ///< refusals of users who have taken their share of the time
  };

  /// One user's, at the tenants' socket.
  struct UserTime {
    Allowance allowance;
    std::deque<std::uint64_t> resting = {};  ///< connections that nobody reads from meanwhile, as they came
    os::Watch next = {};                     ///< the first of them has its turn
    Monotonic next_word{};                   ///< time of the next word on who is turned away
    std::size_t turned_away_silently = 0;
    Monotonic next_complaint{};  ///< time of the next complaint about what it sent
    std::size_t not_complained_of = 0;
    WordAllowance words = {};  ///< on what it asks for
  };

  Status open_door(const std::string& path, Entrance entrance, os::SocketGroup group);
  Status watch_door(Door& door);
  void look_after_path(Door& door);
  void accept_one(Door& door);
  /// None: it may come in.
  std::optional<abi::Refused> why_not(const Door& door, const os::PeerCredentials& peer) const;
  void turn_away(Door& door);
  void pause(Door& door, Nanoseconds time);
  Status watch(Connection& connection);
  UserTime* time_of(Entrance entrance, uid_t user);
  void spend(Entrance entrance, uid_t user, Monotonic begin);
  Monotonic now() const { return room_.clock == nullptr ? Monotonic{} : room_.clock->now(); }
  void let_in(Door& door, const os::PeerCredentials& peer, os::Socket socket);
  void refuse(Door& door, const os::PeerCredentials& peer, os::Socket& socket, const abi::Refused& why);
  void complain(const Connection& connection, const std::string& what);
  void serve(std::uint64_t id);
  void serve_now(Connection& connection);
  void rest(Connection& connection, UserTime& its);
  void await_turn(UserTime& its);
  void serve_first_of(UserTime& its);
  void forget_times();
  void receive_one(std::uint64_t id);
  void post(Connection& connection, std::string text, int descriptor);
  void flush(std::uint64_t id);
  void go_on(Connection& connection, const Result<Outbox::State>& state);
  void give_up(Connection& connection, const Error& why);

  os::EventLoop& loop_;
  ServerHandler& handler_;
  ServerRoom room_;
  std::vector<std::unique_ptr<Door>> doors_;
  os::Watch path_looks_;
  std::uint64_t next_id_ = 1;
  std::map<std::uint64_t, std::unique_ptr<Connection>> connections_;
  std::map<std::pair<Entrance, uid_t>, std::size_t> connections_of_user_;
  std::map<uid_t, UserTime> time_of_users_;
};

}  // namespace firebreak::agent
