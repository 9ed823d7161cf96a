// SPDX-License-Identifier: Apache-2.0
#include "ground/os/closer.h"

#include <sys/socket.h>

#include <utility>

#include "ground/os/self.h"

namespace firebreak::os {
namespace {

/// Data that was sent goes on its way all the same. Otherwise a child of ours that has a copy, and closes it
/// by its exec after us, would not become its program before all is read.
void let_nobody_linger(const Fd& fd) {
  linger set{};
  socklen_t size = sizeof set;
  if (::getsockopt(fd.get(), SOL_SOCKET, SO_LINGER, &set, &size) != 0) return;
  if (set.l_onoff == 0 || set.l_linger == 0) return;
  set = {};
  ::setsockopt(fd.get(), SOL_SOCKET, SO_LINGER, &set, size);
}

}  // namespace

void Closer::close(Fd fd) {
  fd.close_by({});  // we do
  const std::lock_guard lock(mutex_);
  waiting_.push_back(std::move(fd));
  start_thread_if_needed();
}

/// One that is in no close() takes what waits.
void Closer::start_thread_if_needed() {
  if (waiting_.empty() || closing_ < threads_ || threads_ == most_threads) return;
  if (start_detached_thread("fb-close", [self = shared_from_this()] { self->serve(); })) ++threads_;
}

void Closer::serve() {
  std::unique_lock lock(mutex_);
  while (!waiting_.empty()) {
    Fd next = std::move(waiting_.front());
    waiting_.pop_front();
    ++closing_;
    start_thread_if_needed();
    lock.unlock();
    let_nobody_linger(next);
    next.reset();
    lock.lock();
    --closing_;
  }
  --threads_;
}

}  // namespace firebreak::os
