// SPDX-License-Identifier: Apache-2.0
/// The cluster's API server, asked by HTTPS.
#pragma once

#include <atomic>
#include <functional>
#include <memory>
#include <string>

#include "commands/cluster/access.h"
#include "commands/cluster/calls.h"
#include "ground/base/clock.h"

namespace firebreak::cluster {

class ApiServer {
 public:
  struct Patience {
    Milliseconds to_connect{5'000};
    Milliseconds to_answer{10'000};
  };
  static constexpr std::size_t longest_answer_bytes = std::size_t{16} << 20;

  /// `access` is asked before each call: tokens are made anew each hour.
  ApiServer(std::function<Result<ApiAccess>()> access, std::string user_agent, Patience patience);
  ApiServer(std::function<Result<ApiAccess>()> access, std::string user_agent)
      : ApiServer(std::move(access), std::move(user_agent), Patience()) {}
  ~ApiServer();

  /// Waits for the answer, or for why there is none. For one thread.
  ApiAnswer send(const ApiCall& call);
  /// Tells a caller that waits at once that there is no answer, and a later one, too. Thread safe.
  void give_up() { given_up_ = true; }

 private:
  struct Connection;
  std::function<Result<ApiAccess>()> access_;
  std::string user_agent_;
  Patience patience_;
  std::unique_ptr<Connection> connection_;  ///< is kept from one call to the next
  std::atomic<bool> given_up_ = false;      ///< says nothing of other data
};

}  // namespace firebreak::cluster
