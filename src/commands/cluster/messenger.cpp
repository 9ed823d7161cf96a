// SPDX-License-Identifier: Apache-2.0
#include "commands/cluster/messenger.h"

#include <utility>

#include "shared/link/status_view.h"

namespace firebreak::cluster {

Messenger::Messenger(Reporter reporter, Surroundings surroundings)
    : reporter_(std::move(reporter)), at_(std::move(surroundings)), thread_([this] { work(); }) {}

Messenger::~Messenger() {
  {
    const std::lock_guard lock(mutex_);
    ends_ = true;
  }
  at_.give_up();
  changed_.notify_one();
  thread_.join();
}

void Messenger::hear(Result<std::string> status) {
  {
    const std::lock_guard lock(mutex_);
    heard_ = std::move(status);
  }
  changed_.notify_one();
}

void Messenger::work() {
  while (true) {
    std::unique_lock lock(mutex_);
    changed_.wait(lock, [this] { return ends_ || heard_; });
    if (ends_) return;
    const Result<std::string> status = *std::exchange(heard_, std::nullopt);
    lock.unlock();
    take(status);
  }
}

/// One call after another, until nothing is due. What the agent says meanwhile is for the next time.
void Messenger::take(const Result<std::string>& status) {
  if (status) {
    reporter_.agent_said(link::parse_status(*status), at_.now());
  } else {
    reporter_.agent_is_away(at_.now());
  }
  while (const auto call = reporter_.next(at_.now())) {
    const ApiAnswer answer = at_.send(*call);
    reporter_.answered(answer, at_.now());
    for (const std::string& line : reporter_.take_lines()) at_.tell(line);
    const std::lock_guard lock(mutex_);
    if (ends_) return;
  }
  for (const std::string& line : reporter_.take_lines()) at_.tell(line);
}

}  // namespace firebreak::cluster
