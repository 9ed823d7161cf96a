// SPDX-License-Identifier: Apache-2.0
/// An agent that parks its domains, unmodified tenants, and one whose kernel raises an exception.
#pragma once

#include <signal.h>

#include <fstream>
#include <string>
#include <utility>
#include <vector>

#include "tests/failover/supervised_agent.h"

namespace firebreak::tests {

class ParkedDomainWhole : public SupervisedAgent {
 protected:
  /// Longer than any test: nobody is to wait for it.
  static constexpr const char* long_enough = "900";

  void start_parking(const std::string& park_s = long_enough) {
    environment_.emplace_back("FIREBREAK_LOG", "info");
    start_supervised({"--park-s", park_s});
    wait_for_parking("ready");
  }
  std::vector<std::string> checker_command() const {
    return {program("firebreak-checker"), "--until", told_to_end_};
  }
  /// Computes until let_them_end(), and at least one kernel after that.
  Player& start_checker(const std::string& name) {
    Player& checker = start_tenant(name, checker_command());
    wait("the first kernel of " + name, [&] { return checker.said("working"); });
    wait_until_adopted(name);
    return checker;
  }
  /// Such a one that computes until end_brief() alone.
  Player& start_brief() {
    Player& brief = start_tenant("brief", {program("firebreak-checker"), "--until", end_of_brief_});
    wait("its first kernel", [&] { return brief.said("working"); });
    wait_until_adopted("brief");
    return brief;
  }
  void end_brief() const { std::ofstream(end_of_brief_) << "end"; }
  /// Its kernel fills the GPU, and is there. It ends after tell("go"). "--stay": its process then waits for
  /// another word.
  Player& start_large(const std::vector<std::string>& arguments = {}) {
    std::vector<std::string> command = {program("parking_test_gated")};
    command.insert(command.end(), arguments.begin(), arguments.end());
    Player& large = start_tenant("large", std::move(command));
    wait("its kernel", [&] { return large.said("working"); });
    wait_until_adopted("large");
    return large;
  }
  void expect_all_its_words(Player& large) {
    wait_for_end(large);
    EXPECT_TRUE(large.said("right")) << testing::PrintToString(large.lines);
  }
  /// Its kernel is launched once somebody says "go".
  Player& start_rogue(const std::string& kind, const std::string& name = "rogue") {
    Player& rogue = start_tenant(name, {program("firebreak-lab"), "inject", "--wait", kind});
    wait("the faulter", [&] { return rogue.said("prepared"); });
    wait_until_adopted(name);
    return rogue;
  }
  void fault(Player& rogue, const std::string& name = "rogue") {
    rogue.actor->tell("go");
    wait("its name", [&] { return agent_->said("is parked: " + name + "-"); });
  }
  /// A fault is in the list once it is over, which it is a while after its last sign: waits for the first.
  nlohmann::json faults_that_are_over() {
    nlohmann::json faults;
    ask_until("a fault in the list", [&] {
      faults = nlohmann::json::parse(command({"faults", "--json"}).output, nullptr, false);
      return !faults.empty();
    });
    return faults;
  }
  nlohmann::json domain(std::size_t number = 0) {
    const auto all = nlohmann::json::parse(command({"status", "--json"}).output, nullptr, false);
    if (!all.is_object()) return nullptr;
    const nlohmann::json& domains = all["domains"];
    return domains.size() <= number ? nlohmann::json() : domains[number];
  }
  /// 0: the tenant has none.
  pid_t active_of(const std::string& tenant) {
    const auto all = nlohmann::json::parse(command({"status", "--json"}).output, nullptr, false);
    if (!all.is_object()) return 0;
    for (const nlohmann::json& each : all["tenants"]) {
      if (each["name"] == tenant && each["active"].is_object()) return each["active"]["pid"].get<pid_t>();
    }
    return 0;
  }
  std::string parking_state(std::size_t number = 0) {
    const nlohmann::json now = domain(number);
    return now.is_object() && now["parking"].is_object() ? now["parking"]["state"].get<std::string>() : "";
  }
  void wait_for_parking(const std::string& state, std::size_t number = 0) {
    ask_until("parking " + state, [&] { return parking_state(number) == state; });
  }
  void expect_right(Player& checker) {
    wait_for_end(checker);
    EXPECT_EQ(checker.exit_status(), 0);
    EXPECT_TRUE(checker.said("\"wrong_words\": 0")) << testing::PrintToString(checker.lines);
    EXPECT_TRUE(checker.said("\"error\": \"\"")) << testing::PrintToString(checker.lines);
  }
  /// Its kernel's result reaches nobody: it has its error, or is ended, which after a trap it is not.
  void expect_to_have_got_nothing(Player& rogue, pid_t culprit, bool is_trap) {
    wait_for_end(rogue);
    EXPECT_FALSE(rogue.said("CUDA_SUCCESS"));
    EXPECT_EQ(rogue.said("CUDA_ERROR_"), is_trap) << testing::PrintToString(rogue.lines);
    EXPECT_EQ(agent_->said("-" + std::to_string(culprit) + " is ended: "), !is_trap);
  }
  /// It has seen the error, and no wrong word before that.
  void expect_to_have_fallen(Player& checker) {
    wait_for_end(checker);
    EXPECT_EQ(checker.exit_status(), 1);
    EXPECT_TRUE(checker.said("\"wrong_words\": 0")) << testing::PrintToString(checker.lines);
    EXPECT_TRUE(checker.said("CUDA_ERROR_")) << testing::PrintToString(checker.lines);
  }

 private:
  std::string end_of_brief_ = sandbox_.file("end-of-brief");
};

}  // namespace firebreak::tests
