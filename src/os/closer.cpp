// SPDX-License-Identifier: Apache-2.0
#include "os/closer.h"

#include <utility>

#include "os/self.h"

namespace firebreak::os {

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
    next.reset();
    lock.lock();
    --closing_;
  }
  --threads_;
}

}  // namespace firebreak::os
