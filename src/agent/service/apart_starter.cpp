// SPDX-License-Identifier: Apache-2.0
#include "agent/service/apart_starter.h"

#include <utility>

#include "ground/os/self.h"

namespace firebreak::agent {

ApartStarter::~ApartStarter() {
  for (auto& [number, thread] : threads_) thread.join();
}

void ApartStarter::start(ApartService service, Done done) {
  const std::uint64_t number = next_++;
  const auto tell_later = [this, done](const Error& error) {
    loop_.post([is_there = std::weak_ptr(is_there_), error, done] {
      if (!is_there.expired()) done(tl::unexpected(error));
    });
  };
  auto thread = os::start_background_thread(
      "fb-apart", [this, number, service = std::move(service), done = std::move(done)] {
        const Result<pid_t> process = manager_.start_apart(service);
        loop_.post([this, is_there = std::weak_ptr(is_there_), number, process, done] {
          if (!is_there.expired()) finish(number, process, done);
        });
      });
  if (!thread) return tell_later(thread.error());
  threads_[number] = std::move(*thread);
}

void ApartStarter::finish(std::uint64_t number, const Result<pid_t>& process, const Done& done) {
  const auto its = threads_.find(number);
  its->second.join();
  threads_.erase(its);
  done(process);
}

}  // namespace firebreak::agent
