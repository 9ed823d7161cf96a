// SPDX-License-Identifier: Apache-2.0
#include "agent/loop/waiting.h"

#include <spdlog/spdlog.h>

namespace firebreak::agent {

void Waiting::say(const std::string& why) {
  if (why == said_) return;
  said_ = why;
  spdlog::warn("{}", said_);
  manager_.tell_status(said_);
}

void Waiting::on_message(Connection& connection, abi::Message message, std::vector<os::Fd>) {
  if (!std::holds_alternative<abi::Rejoin>(message)) connection.answer(abi::Refused{"the agent is " + said_});
}

Status wait_to_be_replaced(os::EventLoop& loop, ServiceManager& manager, const Sockets& sockets,
                           const Error& why) {
  Waiting waiting(manager);
  waiting.say("older than what is kept: " + to_string(why));
  Server server(loop, waiting);
  if (auto listens = server.listen(sockets); !listens) return propagate(listens);
  // The service is ready: who installs another agent waits for that, and it is up as far as it will ever be.
  manager.tell_ready();
  loop.run();
  return {};
}

}  // namespace firebreak::agent
