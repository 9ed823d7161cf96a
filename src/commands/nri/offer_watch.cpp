// SPDX-License-Identifier: Apache-2.0
#include "commands/nri/offer_watch.h"

#include <utility>

#include "ground/os/self.h"
#include "shared/link/status_view.h"

namespace firebreak::nri {

OfferWatch::OfferWatch(k8s::OfferRules rules, Surroundings surroundings)
    : at_(std::move(surroundings)), keeper_(std::move(rules)), offer_(keeper_.offer()) {}

Status OfferWatch::start() {
  auto thread = os::start_thread([this] { work(); });
  if (!thread) return propagate(thread);
  thread_ = std::move(*thread);
  return {};
}

OfferWatch::~OfferWatch() {
  {
    const std::lock_guard lock(mutex_);
    ends_ = true;
  }
  changed_.notify_all();
  if (thread_.joinable()) thread_.join();
}

k8s::SharedOffer OfferWatch::offer() const {
  const std::lock_guard lock(mutex_);
  return offer_;
}

Actives OfferWatch::actives() const {
  const std::lock_guard lock(mutex_);
  return actives_;
}

void OfferWatch::work() {
  std::unique_lock lock(mutex_);
  while (!ends_) {
    lock.unlock();
    const auto status = at_.ask();
    hear(status);
    lock.lock();
    offer_ = keeper_.offer();
    actives_ = heard_;
    lock.unlock();  // the offer that is told is so by now
    say(said_of_agent_, status ? "the agent answers" : to_string(status.error()));
    say(said_of_seats_, keeper_.described());
    lock.lock();
    changed_.wait_for(lock, at_.between_questions, [this] { return ends_; });
  }
}

void OfferWatch::hear(const Result<std::string>& status) {
  heard_.clear();
  if (status) {
    const link::StatusView view = link::parse_status(*status);
    keeper_.agent_said(view, at_.clock.now());
    for (const auto& [name, tenant] : view.tenants) {
      if (tenant.active != 0) heard_[name] = tenant.active_domain;
    }
  }
  if (!status) keeper_.agent_is_away(at_.clock.now());
}

void OfferWatch::say(std::string& said, const std::string& line) const {
  if (std::exchange(said, line) != line) at_.tell(line);
}

}  // namespace firebreak::nri
