// SPDX-License-Identifier: Apache-2.0
/// Tells the API server what the agent says, on a thread of its own: nobody else waits for it.
#pragma once

#include <condition_variable>
#include <functional>
#include <mutex>
#include <optional>
#include <string>
#include <thread>

#include "commands/cluster/calls.h"
#include "commands/cluster/reporter.h"
#include "ground/base/result.h"

namespace firebreak::cluster {

class Messenger {
 public:
  struct Surroundings {
    std::function<Instant()> now;
    std::function<ApiAnswer(const ApiCall&)> send;  ///< waits for the answer
    std::function<void()> give_up;                  ///< whoever waits for one is to stop that; any thread
    std::function<void(const std::string&)> tell;   ///< one line for a person; any thread
  };
  Messenger(Reporter reporter, Surroundings surroundings);
  /// Faults that are not told by then are told by the next one.
  ~Messenger();

  /// Hears what the agent says now, or why it says nothing. Call it again and again, since only a call looks
  /// whether something is due. Does not wait.
  void hear(Result<std::string> status);

 private:
  void work();
  void take(const Result<std::string>& status);

  Reporter reporter_;  ///< the thread's
  Surroundings at_;
  std::mutex mutex_;  ///< guards the next two
  std::optional<Result<std::string>> heard_;
  bool ends_ = false;
  std::condition_variable changed_;
  std::thread thread_;  ///< last: it uses all others
};

}  // namespace firebreak::cluster
