// SPDX-License-Identifier: Apache-2.0
// Xid lines that name one process or another, and what the agent makes of them.
#include "softgpu/machine/shared_gpu.h"
#include "tests/guard/agent_on_stage.h"

namespace firebreak::tests {
namespace {

class XidNames : public AgentOnStage {
 protected:
  /// A tenant in domain a with a standby that is ready.
  void start_pair() {
    start_tenant("llm", decode);
    wait_for_status("llm", [](const auto& now) { return now["phase"] == "serving"; });
    start_tenant("llm", decode, {"--standby"});
    wait_for_status("llm", [](const auto& now) { return now["standby_state"] == "ready"; });
  }
  /// As the driver prints one of an SM exception, into the kernel log that the agent reads.
  void print_xid_of(pid_t pid) {
    const auto gpu = softgpu::SharedGpu::open(sandbox_.file("d/softgpu")).value();
    gpu->post_kmsg(softgpu::now_ns(),
                   "NVRM: Xid (PCI:0000:00:05): 43, pid=" + std::to_string(pid) + ", name=x, Ch 00000001");
    gpu->wake_kmsg_readers();
  }
  pid_t server_of(const std::string& domain) {
    const auto all = nlohmann::json::parse(command({"status", "--json"}).output, nullptr, false);
    for (const auto& each : all["domains"]) {
      if (each["name"] == domain && !each["server_pids"].empty()) return each["server_pids"][0];
    }
    return 0;
  }

  std::vector<std::string> decode = {
      program("firebreak-decode"), "--steps", "100000", "--pace-ms", "5", "--output",
      sandbox_.file("tokens")};
};

TEST_F(XidNames, APlacedClientsNameInALineIsNoFence) {
  start_agent();
  start_pair();
  const pid_t active = pid_of("llm");
  print_xid_of(active);
  wait_for_status("llm", [](const auto& now) { return now["phase"] == "suspecting" || now["epoch"] == 1; });
  // MPS calls its server ACTIVE, nothing else comes, and so it was nothing.
  wait_for_status("llm", [](const auto& now) { return now["phase"] == "serving"; });
  const nlohmann::json now = status_of("llm");
  EXPECT_EQ(now["epoch"], 0);
  EXPECT_EQ(now["active"]["pid"], active);
  EXPECT_EQ(now["standby_state"], "ready");
}

TEST_F(XidNames, TheServersNameIs) {
  start_agent();
  start_pair();
  const pid_t server = server_of("a");
  ASSERT_NE(server, 0);
  print_xid_of(server);
  wait_for_status("llm", [](const auto& now) { return now["epoch"] == 1; });
}

}  // namespace
}  // namespace firebreak::tests
