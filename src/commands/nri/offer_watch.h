// SPDX-License-Identifier: Apache-2.0
/// Knows what the agent offers, by asking it on a thread of its own: a runtime waits for nobody's answer.
#pragma once

#include <condition_variable>
#include <functional>
#include <mutex>
#include <string>
#include <thread>

#include "commands/k8s/offer_keeper.h"
#include "commands/nri/seating.h"
#include "ground/base/clock.h"
#include "ground/base/result.h"

namespace firebreak::nri {

class OfferWatch {
 public:
  struct Surroundings {
    const Clock& clock;
    std::function<Result<std::string>()> ask;      ///< the agent for its status; by the thread
    std::function<void(const std::string&)> tell;  ///< one line for a person; any thread
    Milliseconds between_questions{500};
  };
  OfferWatch(k8s::OfferRules rules, Surroundings surroundings);
  OfferWatch(const OfferWatch&) = delete;
  OfferWatch& operator=(const OfferWatch&) = delete;
  /// Asks from now on. ResourceExhausted: there is no thread left. Call it once.
  Status start();
  /// Waits for the answer that is under way.
  ~OfferWatch();

  /// Gives the offer as it is now; any thread. Never null.
  k8s::SharedOffer offer() const;
  /// Empty while the agent does not answer; any thread.
  Actives actives() const;

 private:
  void work();
  void hear(const Result<std::string>& status);
  void say(std::string& said, const std::string& line) const;

  Surroundings at_;
  k8s::OfferKeeper keeper_;  ///< the thread's, as the next three
  Actives heard_;
  std::string said_of_agent_;
  std::string said_of_seats_;
  mutable std::mutex mutex_;  ///< guards the next three
  k8s::SharedOffer offer_;
  Actives actives_;
  bool ends_ = false;
  std::condition_variable changed_;
  std::thread thread_;  ///< last: it uses all others
};

}  // namespace firebreak::nri
