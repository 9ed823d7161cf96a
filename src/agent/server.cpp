// SPDX-License-Identifier: Apache-2.0
#include "agent/server.h"

#include <spdlog/spdlog.h>
#include <unistd.h>

namespace firebreak::agent {

bool Connection::send(const abi::Message& message, int descriptor) {
  const std::string text = abi::encode(message);
  const std::span<const int> descriptors(&descriptor, descriptor >= 0 ? 1 : 0);
  const auto sent = socket_.send(std::as_bytes(std::span(text)), descriptors, Milliseconds(0));
  if (!sent) spdlog::debug("process {} could not be told: {}", peer_.pid, sent.error().message);
  return sent.has_value();
}

Result<std::unique_ptr<Server>> Server::start(os::EventLoop& loop, const std::string& path,
                                              ServerHandler& handler) {
  auto listener = os::Listener::listen(path, os::SocketAccess::Group);
  if (!listener) return propagate(listener);
  std::unique_ptr<Server> server(new Server(loop, std::move(*listener), handler));
  auto watch = loop.watch_readable(server->listener_.fd().get(), [raw = server.get()] { raw->accept_one(); });
  if (!watch) return propagate(watch);
  server->watch_ = std::move(*watch);
  return server;
}

Connection* Server::find(std::uint64_t id) {
  const auto found = connections_.find(id);
  return found == connections_.end() ? nullptr : found->second.get();
}

void Server::accept_one() {
  auto socket = listener_.accept(Milliseconds(0));
  if (!socket) return;
  const auto peer = socket->peer_credentials();
  if (!peer || (peer->uid != 0 && peer->uid != ::geteuid())) {
    spdlog::warn("turned away a connection of another user");
    return;
  }
  if (connections_.size() >= connections_max) {
    spdlog::warn("turned away process {}: {} connections are open", peer->pid, connections_.size());
    return;
  }
  const std::uint64_t id = next_id_++;
  auto connection = std::make_unique<Connection>(id, std::move(*socket), *peer);
  auto watch = loop_.watch_readable(connection->socket_.fd().get(), [this, id] { receive_one(id); });
  if (!watch) {
    spdlog::error("cannot wait for process {}: {}", peer->pid, watch.error().message);
    return;
  }
  connection->watch_ = std::move(*watch);
  connections_.emplace(id, std::move(connection));
}

void Server::receive_one(std::uint64_t id) {
  Connection* connection = find(id);
  if (connection == nullptr) return;
  auto received = connection->socket_.receive(Milliseconds(0));
  if (!received) {
    if (received.error().code != ErrorCode::Timeout) close(id);
    return;
  }
  const auto* text = reinterpret_cast<const char*>(received->bytes.data());
  auto message = abi::decode(std::string_view(text, received->bytes.size()));
  if (!message) {
    spdlog::warn("process {} sent {}", connection->peer_.pid, message.error().message);
    connection->send(abi::Refused{message.error().message});
    close(id);
    return;
  }
  handler_.on_message(*connection, std::move(*message), std::move(received->descriptors));
}

void Server::close(std::uint64_t id) {
  const auto found = connections_.find(id);
  if (found == connections_.end()) return;
  handler_.on_closed(*found->second);
  connections_.erase(id);
}

}  // namespace firebreak::agent
