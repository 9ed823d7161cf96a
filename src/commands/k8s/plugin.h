// SPDX-License-Identifier: Apache-2.0
/// Joins the agent and the kubelet: what one says of its domains, the other is offered as seats.
#pragma once

#include <functional>
#include <memory>
#include <optional>
#include <string>

#include "commands/k8s/kubelet.h"
#include "commands/k8s/offer_keeper.h"
#include "commands/k8s/plugin_server.h"
#include "commands/k8s/registration.h"
#include "ground/base/clock.h"
#include "ground/base/result.h"

namespace firebreak::k8s {

/// The device plugin, for one thread, which looks again and again. Neither kubelet nor agent has to be there,
/// and each may come anew.
class Plugin {
 public:
  /// Its socket's name, in the kubelet's folder.
  static constexpr const char* endpoint = "firebreak.sock";
  static constexpr Milliseconds register_timeout{5'000};

  struct Surroundings {
    const Clock& clock;
    std::function<Result<std::string>()> ask;      ///< the agent for its status
    std::function<void(const std::string&)> tell;  ///< one line for a person
  };
  Plugin(const std::string& kubelet_folder, OfferRules rules, Surroundings surroundings)
      : at_(std::move(surroundings)), keeper_(std::move(rules)), kubelet_(kubelet_folder) {}

  /// Asks the agent, tells the kubelet what has changed, and registers where it has to. Waits for both, for
  /// register_timeout and what `ask` takes.
  void look();

 private:
  /// Says each thing once, until there is something else to say.
  class Teller {
   public:
    void say(const Surroundings& at, const std::string& line);

   private:
    std::string said_;
  };

  void ask_agent();
  void look_at_kubelet();
  Status register_now();

  Surroundings at_;
  OfferKeeper keeper_;
  Kubelet kubelet_;
  Registration registration_;
  std::unique_ptr<PluginServer> server_;         ///< null: nobody has asked for it yet
  std::optional<SocketIdentity> server_socket_;  ///< identity of the socket when it was made
  Teller of_agent_;
  Teller of_seats_;
  Teller of_kubelet_;
};

}  // namespace firebreak::k8s
