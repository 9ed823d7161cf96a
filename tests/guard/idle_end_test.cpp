// SPDX-License-Identifier: Apache-2.0
// A program whose work has ended may end in any way: that is no fault.
#include <signal.h>

#include "tests/guard/agent_on_stage.h"

namespace firebreak::tests {
namespace {

constexpr int status_of_the_signal = 128;

class IdleEnd : public AgentOnStage {
 protected:
  void SetUp() override {
#if defined(__SANITIZE_THREAD__) || defined(__SANITIZE_ADDRESS__)
    GTEST_SKIP() << "a sanitizer's runtime wants to be the first library";
#endif
  }
  void expect_end(const std::string& how, const std::string& end, int status,
                  const std::vector<std::string>& run_arguments) {
    const Player& program_of_it =
        start_tenant("p", {program("guard_test_finisher"), how, end}, run_arguments);
    wait_for_end(program_of_it);
    EXPECT_EQ(program_of_it.exit_status(), status) << testing::PrintToString(program_of_it.lines);
    ask_until("no tenant", [&] { return status_document().at("tenants").empty(); });
  }
  /// Each way to wait, with each way to end.
  void expect_no_fault(const std::vector<std::string>& run_arguments) {
    for (const std::string how : {"context", "stream", "query", "copy", "own-stream"}) {
      SCOPED_TRACE(how);
      expect_end(how, "0", 0, run_arguments);
      expect_end(how, "7", 7, run_arguments);
      expect_end(how, "at-once", 7, run_arguments);
      for (const int signal : {SIGINT, SIGTERM, SIGKILL, SIGUSR1, SIGPIPE})
        expect_end(how, "signal" + std::to_string(signal), status_of_the_signal + signal, run_arguments);
    }
    EXPECT_TRUE(nlohmann::json::parse(command({"faults", "--json"}).output).empty())
        << command({"faults"}).output;
  }
  nlohmann::json status_document() { return nlohmann::json::parse(command({"status", "--json"}).output); }
};

TEST_F(IdleEnd, OfAGuardedProgramIsNoFault) {
  start_agent();
  expect_no_fault({"--guard"});
}

TEST_F(IdleEnd, OfAProgramWithASpareIsNoFault) {
  environment_ = {{"FIREBREAK_WITHOUT", ""}};
  start_agent({"--spares"});
  expect_no_fault({});
}

}  // namespace
}  // namespace firebreak::tests
