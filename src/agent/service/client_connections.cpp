// SPDX-License-Identifier: Apache-2.0
#include "agent/service/client_connections.h"

#include <mutex>

#include "ground/os/socket.h"

namespace firebreak::agent {

/// What an accepter's thread has goes through here: it may outlive us, and the loop.
struct ClientConnections::Inbox : std::enable_shared_from_this<Inbox> {
  std::mutex mutex;                    ///< taken before the loop's own; guards the next
  os::EventLoop* loop = nullptr;       ///< none: nobody is here any more
  ClientConnections* owner = nullptr;  ///< the loop's thread's

  void post(std::function<void(ClientConnections&)> what) {
    const std::lock_guard lock(mutex);
    if (loop == nullptr) return;
    loop->post([self = shared_from_this(), what = std::move(what)] {
      if (self->owner != nullptr) what(*self->owner);
    });
  }
  void close() {
    owner = nullptr;
    const std::lock_guard lock(mutex);
    loop = nullptr;
  }
};

ClientConnections::~ClientConnections() {
  if (inbox_) inbox_->close();
}

Status ClientConnections::listen(os::Fd listener) {
  if (!os::is_tcp_listener(listener.get()))
    return fail(ErrorCode::InvalidArgument, "that is no TCP socket that listens");
  listen_at(std::move(listener));
  return {};
}

/// Clients that were accepted at the socket before, and not taken yet, are the tenant's all the same.
void ClientConnections::listen_at(os::Fd listener) {
  accepter_ = listener ? std::make_unique<os::Accepter>(std::move(listener)) : nullptr;
  ++accepters_;
  is_accepting_ = false;
  if (unkept_.empty()) tell_all(fail(ErrorCode::Timeout, "the tenant listens elsewhere now"));
}

void ClientConnections::next(os::EventLoop& loop, std::uint64_t after, const Keep& keep, OnNext tell) {
  const auto found = open_.upper_bound(after);
  if (found != open_.end() && !unkept_.contains(found->first))
    return tell(Entry{found->first, found->second.get()});
  if (!accepter_)
    return tell(fail(ErrorCode::InvalidArgument, "the tenant listens nowhere: fb_listen comes first"));
  if (open_.size() >= most && unkept_.empty())
    return tell(fail(ErrorCode::Timeout, "the tenant has as many connections as are kept"));
  if (askers_.size() >= most_askers)
    return tell(fail(ErrorCode::ResourceExhausted, "too many wait for the tenant's next client"));
  const bool is_under_way = !is_idle();
  askers_.push_back(std::move(tell));
  if (is_under_way) return;
  if (auto accepting = accept(loop, keep); !accepting) tell_all(propagate(accepting));
}

Status ClientConnections::accept(os::EventLoop& loop, const Keep& keep) {
  if (!inbox_) {
    inbox_ = std::make_shared<Inbox>();
    inbox_->owner = this;
    inbox_->loop = &loop;
  }
  auto accepting = accepter_->accept([inbox = inbox_, accepter = accepters_, keep](Result<os::Fd> accepted) {
    auto its = std::make_shared<Result<os::Fd>>(std::move(accepted));
    inbox->post(
        [its, accepter, keep](ClientConnections& owner) { owner.take(accepter, std::move(*its), keep); });
  });
  is_accepting_ = accepting.has_value();
  return accepting;
}

void ClientConnections::take(std::uint64_t accepter, Result<os::Fd> accepted, const Keep& keep) {
  const bool is_ours = accepter == accepters_;
  if (is_ours) is_accepting_ = false;
  if (!accepted) {
    if (is_ours && unkept_.empty()) tell_all(propagate(accepted));
    return;
  }
  ++changes_;
  const auto added = open_.emplace(++last_id_, std::move(*accepted)).first;
  unkept_.insert(added->first);
  keep(Entry{added->first, added->second.get()}, [inbox = inbox_, id = added->first] {
    if (inbox->owner != nullptr) inbox->owner->kept(id);
  });
}

void ClientConnections::kept(std::uint64_t id) {
  unkept_.erase(id);
  const auto found = open_.find(id);
  if (found == open_.end()) {
    if (is_idle()) tell_all(fail(ErrorCode::Timeout, "it was released before it was given out"));
    return;
  }
  tell_all(Entry{id, found->second.get()});
}

void ClientConnections::tell_all(const Result<Entry>& next) {
  for (const OnNext& tell : std::exchange(askers_, {})) tell(next);
}

void ClientConnections::restore(std::uint64_t last_id, os::Fd listener,
                                std::map<std::uint64_t, os::Fd> open) {
  last_id_ = last_id;
  listen_at(std::move(listener));
  open_ = std::move(open);
  ++changes_;
}

}  // namespace firebreak::agent
