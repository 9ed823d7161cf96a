// SPDX-License-Identifier: Apache-2.0
// Clients that join a domain by its directory alone, with nobody having placed them there.
#include "tests/guard/agent_on_stage.h"

namespace firebreak::tests {
namespace {

using testing::HasSubstr;

class Foreign : public AgentOnStage {
 protected:
  /// That an incident is closed is no warning.
  Foreign() { environment_.emplace_back("FIREBREAK_LOG", "info"); }
  Player& start_foreign(std::vector<std::string> command) {
    return start(std::move(command), {{"FIREBREAK_SOFTGPU_DIR", sandbox_.file("d/softgpu")},
                                      {"CUDA_MPS_PIPE_DIRECTORY", sandbox_.file("d/a/pipe")}});
  }
  nlohmann::json foreign_in(const std::string& name) {
    const auto all = nlohmann::json::parse(command({"status", "--json"}).output, nullptr, false);
    for (const auto& domain : all["domains"]) {
      if (domain["name"] == name) return domain["foreign"];
    }
    return nullptr;
  }
  /// What the agent's log says of an incident of that class, one text for all its lines.
  std::string incidents_of(const std::string& fault_class) {
    std::string all;
    for (const std::string& line : agent_->lines) {
      if (line.find("incident ") != std::string::npos && line.find(fault_class) != std::string::npos) {
        all += line + "\n";
      }
    }
    return all;
  }
};

TEST_F(Foreign, AClientIsSeenAndListed) {
  start_agent();
  Player& tenant = start_neighbour();
  Player& foreign = start_foreign({program("firebreak-lab"), "victim", "--pace-ms", "5"});
  const pid_t pid = foreign.actor->record().pid;
  while (foreign_in("a").empty()) {
  }
  const nlohmann::json listed = foreign_in("a");
  ASSERT_EQ(listed.size(), 1u);
  EXPECT_EQ(listed[0]["pid"], pid);
  EXPECT_EQ(listed[0]["name"], "firebreak-lab");
  EXPECT_EQ(listed[0]["came"], "not placed by us");
  EXPECT_THAT(command({"status"}).output, HasSubstr("FOREIGN"));
  wait("it is told",
       [&] { return agent_->said("process " + std::to_string(pid) + ": firebreak-lab of user"); });
  foreign.actor->tell("end");
  wait_for_end(foreign);
  while (!foreign_in("a").empty()) {
  }
  expect_unharmed(tenant);
}

TEST_F(Foreign, OneThatATenantsProcessHasStartedFaultsInTheTenantsName) {
  start_agent();
  start_neighbour();
  Player& launcher = start_tenant(
      "launcher", {"sh", "-c", "\"$0\" inject --wait unmapped-store-far; true", program("firebreak-lab")},
      {"--without", "guard,spare"});
  wait("it is prepared", [&] { return launcher.said("prepared"); });
  ask_until("MPS names it", [&] { return !foreign_in("a").empty() || !foreign_in("b").empty(); });
  launcher.actor->tell("go");
  wait_for_end(launcher);
  nlohmann::json faults;
  ask_until("the fault is over", [&] {
    faults = nlohmann::json::parse(command({"faults", "--json"}).output, nullptr, false);
    return faults.is_array() && !faults.empty();
  });
  EXPECT_EQ(faults[0]["culprit"], "launcher");
  for (const auto& each : faults[0]["touched"]) EXPECT_NE(each["tenant"], "launcher");
  EXPECT_THAT(incidents_of("MMU"), HasSubstr(" (launcher), certain"));
}

TEST_F(Foreign, ItsSmFaultIsNotTheTenantsBesideIt) {
  start_agent();
  start_neighbour();
  const pid_t tenant = pid_of("neighbour");
  Player& foreign = start_foreign({program("firebreak-lab"), "inject", "trap"});
  wait("the fault", [&] { return !incidents_of("SM").empty(); });
  wait_for_end(foreign);
  wait("all that is said of it", [&] { return incidents_of("SM").find("closed") != std::string::npos; });
  EXPECT_THAT(incidents_of("SM"), testing::Not(HasSubstr("culprit process " + std::to_string(tenant))));
}

TEST_F(Foreign, ItsMemoryFaultIsItsOwn) {
  start_agent();
  start_neighbour();
  Player& foreign = start_foreign({program("firebreak-lab"), "inject", "--wait", "unmapped-store"});
  const pid_t pid = foreign.actor->record().pid;
  wait("it is prepared", [&] { return foreign.said("prepared"); });
  while (foreign_in("a").empty()) {
  }
  foreign.actor->tell("go");
  wait_for_end(foreign);
  wait("it is named",
       [&] { return agent_->said("culprit process " + std::to_string(pid) + ", certain: UVM's queue"); });
}

}  // namespace
}  // namespace firebreak::tests
