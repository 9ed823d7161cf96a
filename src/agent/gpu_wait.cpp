// SPDX-License-Identifier: Apache-2.0
#include "agent/gpu_wait.h"

#include <spdlog/spdlog.h>

#include "agent/server.h"

namespace firebreak::agent {
namespace {

class Waiting final : public ServerHandler {
 public:
  explicit Waiting(ServiceManager& manager) : manager_(manager) {}

  /// Once for each reason.
  void say(const Error& missing) {
    const std::string now = "waiting for a GPU: " + to_string(missing);
    if (now == said_) return;
    said_ = now;
    spdlog::warn("{}", said_);
    manager_.tell_status(said_);
  }

  /// Who was an earlier agent's asks again until there is one; a refusal would be for good.
  void on_message(Connection& connection, abi::Message message, std::vector<os::Fd>) override {
    if (!std::holds_alternative<abi::Rejoin>(message))
      connection.answer(abi::Refused{"the agent is " + said_});
  }
  void on_closed(Connection&) override {}

 private:
  ServiceManager& manager_;
  std::string said_;
};

}  // namespace

Result<bool> wait_for_gpu(os::EventLoop& loop, ServiceManager& manager, const Sockets& sockets,
                          const std::function<Status()>& is_there, Milliseconds period) {
  Status there = is_there();
  if (there) return true;
  Waiting waiting(manager);
  waiting.say(there.error());
  Server server(loop, waiting);
  if (auto listens = server.listen(sockets); !listens) return propagate(listens);
  const auto looks = loop.every(period, [&] {
    there = is_there();
    if (there) return loop.stop();
    waiting.say(there.error());
  });
  if (!looks) return propagate(looks);
  loop.run();
  return there.has_value();
}

}  // namespace firebreak::agent
