// SPDX-License-Identifier: Apache-2.0
/// The agent's socket: connections, whole messages in and out. Nothing that a peer sends or leaves undone
/// blocks it.
#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <vector>

#include "abi/wire.h"
#include "os/event_loop.h"
#include "os/socket.h"

namespace firebreak::agent {

/// One peer. Lives until it hangs up, sends nonsense, or does not read what it is sent.
class Connection {
 public:
  Connection(std::uint64_t id, os::Socket socket, os::PeerCredentials peer)
      : id_(id), socket_(std::move(socket)), peer_(peer) {}

  std::uint64_t id() const { return id_; }
  const os::PeerCredentials& peer() const { return peer_; }
  /// False when the peer is gone or does not read; the connection is then closed by the server.
  bool send(const abi::Message& message, int descriptor = -1);

 private:
  friend class Server;
  std::uint64_t id_;
  os::Socket socket_;
  os::PeerCredentials peer_;
  os::Watch watch_;
};

/// What the server tells. Called on the loop's thread.
class ServerHandler {
 public:
  virtual ~ServerHandler() = default;
  virtual void on_message(Connection& connection, abi::Message message, std::vector<os::Fd> descriptors) = 0;
  /// The connection is gone after this call.
  virtual void on_closed(Connection& connection) = 0;
};

/// Belongs to the loop's thread.
class Server {
 public:
  static constexpr std::size_t connections_max = 512;

  /// Listens at `path` (mode 0660). Peers of another user than ours and root are turned away.
  static Result<std::unique_ptr<Server>> start(os::EventLoop& loop, const std::string& path,
                                               ServerHandler& handler);

  /// Null when the connection is gone.
  Connection* find(std::uint64_t id);
  const std::string& path() const { return listener_.path(); }

 private:
  Server(os::EventLoop& loop, os::Listener listener, ServerHandler& handler)
      : loop_(loop), listener_(std::move(listener)), handler_(handler) {}
  void accept_one();
  void receive_one(std::uint64_t id);
  void close(std::uint64_t id);

  os::EventLoop& loop_;
  os::Listener listener_;
  ServerHandler& handler_;
  os::Watch watch_;
  std::uint64_t next_id_ = 1;
  std::map<std::uint64_t, std::unique_ptr<Connection>> connections_;
};

}  // namespace firebreak::agent
