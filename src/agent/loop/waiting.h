// SPDX-License-Identifier: Apache-2.0
/// An agent that serves nobody, for now or at all, and says why to all who ask.
#pragma once

#include <string>
#include <vector>

#include "agent/loop/server.h"
#include "agent/service/service_manager.h"
#include "ground/os/event_loop.h"

namespace firebreak::agent {

/// Belongs to the loop's thread.
class Waiting final : public ServerHandler {
 public:
  /// `manager` outlives it.
  explicit Waiting(ServiceManager& manager) : manager_(manager) {}

  /// Says why to the log and to the service manager, once for each reason; and from now on to who asks.
  void say(const std::string& why);

  /// Members of an earlier agent ask again until there is one; a refusal would be for good.
  void on_message(Connection& connection, abi::Message message, std::vector<os::Fd> descriptors) override;
  void on_closed(Connection&) override {}

 private:
  ServiceManager& manager_;
  std::string said_;
};

/// Runs an agent that is older than what is kept, and `why` that is so: the service manager keeps that only
/// as long as the service runs, so it runs, and touches nothing. Runs `loop` until something stops it.
Status wait_to_be_replaced(os::EventLoop& loop, ServiceManager& manager, const Sockets& sockets,
                           const Error& why);

}  // namespace firebreak::agent
