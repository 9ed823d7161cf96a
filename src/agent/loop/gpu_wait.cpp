// SPDX-License-Identifier: Apache-2.0
#include "agent/loop/gpu_wait.h"

#include "agent/loop/waiting.h"

namespace firebreak::agent {

Result<bool> wait_for_gpu(os::EventLoop& loop, ServiceManager& manager, const Sockets& sockets,
                          const std::function<Status()>& is_there, Milliseconds period) {
  Status there = is_there();
  if (there) return true;
  Waiting waiting(manager);
  const auto say = [&waiting](const Error& missing) {
    waiting.say("waiting for a GPU: " + to_string(missing));
  };
  say(there.error());
  Server server(loop, waiting);
  if (auto listens = server.listen(sockets); !listens) return propagate(listens);
  const auto looks = loop.every(period, [&] {
    there = is_there();
    if (there) return loop.stop();
    say(there.error());
  });
  if (!looks) return propagate(looks);
  loop.run();
  return there.has_value();
}

}  // namespace firebreak::agent
