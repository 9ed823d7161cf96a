// SPDX-License-Identifier: Apache-2.0
/// An agent with tenants of several users, of whom one means harm.
#pragma once

#include <nlohmann/json.hpp>

#include "ground/os/processes.h"
#include "tests/doubles/agent/agent_test_support.h"

namespace firebreak::agent {

inline constexpr uid_t mallory = 65534;  ///< and group

class Users : public AgentTest {
 protected:
  void SetUp() override {
    if (::geteuid() != 0) GTEST_SKIP() << "only root can be two users";
    ASSERT_TRUE(os::let_through(directory.path()));
    agent.reset();
    restart();
    victim.emplace(pair("llm"));
    const auto placed = std::get<abi::Placed>(ask(*owner, abi::Place{"placed", abi::Role::Active}));
    ASSERT_FALSE(placed.environment.empty());
  }
  /// Joined without a token, and told to come.
  std::optional<ProtectedTenant> victim;
  std::optional<Peer> owner;

  void restart(std::size_t tenants_of_user_max = AgentOptions{}.tenants_of_user_max) {
    owner.reset();
    AgentOptions options{path, {}};
    options.tenants_socket_path = directory.path() + "/tenants";
    options.tenant_group = mallory;
    options.observers_socket_path = directory.path() + "/status";
    options.observer_group = mallory;
    options.tenants_of_user_max = tenants_of_user_max;
    agent = start_agent(options);
    owner.emplace(peer());
  }
  Peer user_peer(uid_t user, const std::string& socket = "/tenants") {
    Peer made(kernel, directory.path() + socket, "user=" + std::to_string(user));
    settle();
    return made;
  }
  pid_t child_of(const Peer& peer) {
    std::vector<pid_t> children;
    while (children.empty()) children = os::children_of(kernel, peer.pid());
    return children.front();
  }
  nlohmann::json tenants_of(Peer& asker) {
    const auto answer = std::get<abi::StatusDocument>(ask(asker, abi::StatusRequest{}));
    return nlohmann::json::parse(answer.json)["tenants"];
  }
  /// An operator sees this of the victim.
  std::string victims() const {
    const auto all = nlohmann::json::parse(agent->status_json());
    std::string text;
    for (auto each : all["tenants"]) {
      if (each["name"] != "llm") continue;
      each.erase("unprotected_ms");
      text += each.dump();
    }
    return text;
  }
};

}  // namespace firebreak::agent
