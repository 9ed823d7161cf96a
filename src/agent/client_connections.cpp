// SPDX-License-Identifier: Apache-2.0
#include "agent/client_connections.h"

#include "os/socket.h"

namespace firebreak::agent {

Status ClientConnections::listen(os::Fd listener) {
  if (!os::is_tcp_listener(listener.get()))
    return fail(ErrorCode::InvalidArgument, "that is no TCP socket that listens");
  listener_ = std::move(listener);
  return {};
}

Result<ClientConnections::Entry> ClientConnections::next(std::uint64_t after) {
  if (const auto found = open_.upper_bound(after); found != open_.end())
    return Entry{found->first, found->second.get(), false};
  if (!listener_)
    return fail(ErrorCode::InvalidArgument, "the tenant listens nowhere: fb_listen comes first");
  if (open_.size() >= most) return fail(ErrorCode::Timeout, "the tenant has as many connections as are kept");
  auto accepted = os::accept_waiting(listener_.get());
  if (!accepted) return propagate(accepted);
  ++changes_;
  const auto added = open_.emplace(++last_id_, std::move(*accepted)).first;
  return Entry{added->first, added->second.get(), true};
}

void ClientConnections::restore(std::uint64_t last_id, os::Fd listener,
                                std::map<std::uint64_t, os::Fd> open) {
  last_id_ = last_id;
  listener_ = std::move(listener);
  open_ = std::move(open);
  ++changes_;
}

}  // namespace firebreak::agent
