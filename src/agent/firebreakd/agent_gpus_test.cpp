// SPDX-License-Identifier: Apache-2.0
// A GPU that breaks, of two; and an Xid of one that is not there.
#include "agent/faults/fault/xid.h"
#include "tests/doubles/agent/agent_test_support.h"

namespace firebreak::agent {
namespace {

using testing::HasSubstr;

struct AgentGpus : AgentTest {
  AgentGpus() {
    agent.reset();
    domains.gpus = {{"a", "GPU-x1"}, {"b", "GPU-y2"}};
    agent = start_agent(options());
  }
  AgentOptions options() const {
    AgentOptions options{path, {{"LD_LIBRARY_PATH", "/soft"}}};
    options.gpus = {{"GPU-x1", "0000:00:05"}, {"GPU-y2", "0000:00:06"}};
    return options;
  }
  /// As the watcher has it, who knows the machine.
  void hear_xid(const std::string& text, std::optional<std::uint32_t> gpu) {
    fault::Fault fault = fault::from_xid(*fault::parse_xid("NVRM: Xid (PCI:" + text), clock.now());
    fault.gpu.number = gpu;
    fault.gpu.is_here = gpu.has_value();
    hear(fault);
  }
  std::string placed_in(const std::string& tenant) {
    Peer command = peer();
    const abi::Message answer = ask(command, abi::Place{tenant, abi::Role::Active});
    const auto* placed = std::get_if<abi::Placed>(&answer);
    if (placed == nullptr) return std::get<abi::Refused>(answer).reason;
    for (const auto& [name, value] : placed->environment) {
      if (name == "CUDA_MPS_PIPE_DIRECTORY") return value;
    }
    return {};
  }
};

/// A dead GPU has the fewest tenants, and so drew every new one.
TEST_F(AgentGpus, NobodyIsPlacedOnADeadOne) {
  Peer tenant = peer();
  join(tenant, "one", abi::Role::Active);
  hear_xid("0000:00:06): 79, GPU has fallen off the bus.", 1);
  for (const char* name : {"two", "three", "four", "five"}) EXPECT_EQ(placed_in(name), "/mps/a") << name;
  EXPECT_THAT(agent->status_json(), HasSubstr("\"state\": \"gpu_failed\""));
  EXPECT_THAT(agent->status_json(), HasSubstr("its GPU needs a reboot (Xid 79, RESTART_BM)"));
}

TEST_F(AgentGpus, WhoAsksWhileAllAreDeadIsToldWhy) {
  hear_xid("0000:00:05): 95, Uncontained: LTC TAG (0x2,0x1). RST: Yes, D-RST: No", 0);
  hear_xid("0000:00:06): 79, GPU has fallen off the bus.", 1);
  EXPECT_THAT(placed_in("two"), HasSubstr("a is not to be used: its GPU needs a reset (Xid 95, RESET_GPU)"));
}

TEST_F(AgentGpus, AnOperatorsWordIsAWayBack) {
  hear_xid("0000:00:06): 79, GPU has fallen off the bus.", 1);
  Peer watcher = peer(), command = peer();
  ask(watcher, abi::Subscribe{});
  EXPECT_THAT(refusal(command, abi::GpuRecovered{"2"}), HasSubstr("there is GPU-x1 (0000:00:05), GPU-y2"));
  EXPECT_TRUE(std::holds_alternative<abi::Done>(ask(command, abi::GpuRecovered{"0000:00:06"})));
  const auto told = std::get<abi::Event>(watcher.receive()->message);
  EXPECT_EQ(told.what, abi::EventKind::Gpu);
  EXPECT_EQ(told.text, "GPU 1 (0000:00:06) is well again: an operator says so");
  EXPECT_TRUE(domains.reports()[1].gpu_needs.empty());
}

TEST_F(AgentGpus, TheNextAgentPlacesNobodyThereEither) {
  hear_xid("0000:00:06): 79, GPU has fallen off the bus.", 1);
  agent.reset();
  domains.gpu_needs.clear();
  domains.states.clear();
  agent = start_agent(options());
  EXPECT_THAT(domains.gpu_needs["b"], HasSubstr("Xid 79"));
}

TEST_F(AgentGpus, AnXidOfOneThatIsNotThereIsToldAndConcernsNobody) {
  auto [active, standby, page] = pair("llm");
  Peer watcher = peer();
  ask(watcher, abi::Subscribe{});
  hear_xid("0000:99:00): 43, pid=" + std::to_string(FakeDomains::server_of_a) + ", name=x, Ch 00000008", {});
  EXPECT_EQ(word(page).epoch, 0u);
  const auto told = std::get<abi::Event>(watcher.receive()->message);
  EXPECT_THAT(told.text, HasSubstr("GPU 0000:99:00, which is none of this machine's"));
  EXPECT_EQ(told.domain, "");
  fault::Incident incident;
  incident.id = 1;
  incident.fault_class = fault::FaultClass::Device;
  incident.gpu = {.pci = "0000:99:00", .is_here = false};
  incident.signals.emplace_back();
  incident.closed = true;
  detectors.callbacks.on_incident(incident);
  EXPECT_THAT(agent->status_json(), HasSubstr("\"past_faults\": []"));
}

TEST_F(AgentGpus, AFaultOfOneDoesNotCountTenantsOfTheOther) {
  Peer one = peer(), two = peer();
  for (const auto& [peer, name] : {std::pair(&one, "one"), std::pair(&two, "two")}) {
    const abi::Join beside{name, abi::Role::Active, {}, {}, domains.pipe_directories + "a"};
    ASSERT_TRUE(std::holds_alternative<abi::Joined>(ask(*peer, beside)));
  }
  fault::Incident incident;
  incident.id = 1;
  incident.fault_class = fault::FaultClass::Device;
  incident.kind = "Xid 79";
  incident.gpu = {.number = 1, .pci = "0000:00:06"};
  incident.signals.emplace_back();
  detectors.callbacks.on_incident(incident);
  for (Peer* each : {&one, &two}) {
    each->end(kernel);
    detectors.callbacks.on_exit(each->pid());
  }
  settle();
  incident.closed = true;
  detectors.callbacks.on_incident(incident);
  EXPECT_THAT(agent->status_json(), HasSubstr("\"outcome\": \"contained\""));
}

}  // namespace
}  // namespace firebreak::agent
