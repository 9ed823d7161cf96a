// SPDX-License-Identifier: Apache-2.0
// firebreak-nri as a program: a real agent on the software GPU, and a stand-in of the runtime.
#include <signal.h>

#include "tests/doubles/nri/runtime_stand_in.h"
#include "tests/guard/agent_on_stage.h"

namespace firebreak::tests {
namespace {

namespace api = ::nri::pkg::api::v1alpha1;

using nri::RuntimeStandIn;
using testing::Contains;
using testing::HasSubstr;

class PodsByAnnotation : public AgentOnStage {
 protected:
  std::string nri_socket() { return sandbox_.file("nri.sock"); }
  void start_plugin() {
    plugin_ = &start({"sh", "-c", R"(exec "$@" 2>&1)", "sh", program("firebreak-nri"), "--socket",
                      sandbox_.file("d/status.sock"), "--nri-socket", nri_socket()});
  }
  /// The stage's events and the stand-in's alike.
  void go_on_until(const std::string& what, const std::function<bool()>& holds) {
    bool does_hold = false;
    for (int looks = 0; looks < 6'000 && !does_hold; ++looks) {
      if (runtime_) runtime_->look();
      stage_->loop().run_once(Milliseconds(10));
      does_hold = holds();
    }
    ASSERT_TRUE(does_hold) << what << testing::PrintToString(plugin_->lines);
  }
  void wait_for_line(const std::string& line, std::ptrdiff_t times = 1) {
    go_on_until(line, [&] { return std::ranges::count(plugin_->lines, "firebreak-nri: " + line) >= times; });
  }
  ttrpc::Response create(const std::string& annotation, const std::string& value) {
    api::CreateContainerRequest request;
    request.mutable_pod()->set_name("p");
    request.mutable_pod()->set_uid("u");
    request.mutable_pod()->set_namespace_("n");
    (*request.mutable_pod()->mutable_annotations())[annotation] = value;
    request.mutable_container()->set_name("main");
    const std::uint32_t stream = runtime_->create(request);
    go_on_until("an answer", [&] { return runtime_->answer(stream).has_value(); });
    return runtime_->answer(stream).value_or(ttrpc::Response());
  }
  static std::vector<std::string> environment_in(const ttrpc::Response& response) {
    api::CreateContainerResponse created;
    created.ParseFromString(response.payload());
    std::vector<std::string> all;
    for (const auto& variable : created.adjust().env())
      all.push_back(variable.key() + "=" + variable.value());
    return all;
  }

  std::unique_ptr<RuntimeStandIn> runtime_;
  Player* plugin_ = nullptr;
};

TEST_F(PodsByAnnotation, GetSeatsOfARealAgentAlsoFromARuntimeThatRestarts) {
  start_plugin();
  go_on_until("the word on the runtime", [&] {
    return std::ranges::any_of(plugin_->lines, [](const std::string& line) {
      return line.find("waits for a runtime") != std::string::npos;
    });
  });
  runtime_ = std::make_unique<RuntimeStandIn>(nri_socket());
  wait_for_line("stand-in 1.0 asks for each container");
  EXPECT_THAT(create("firebreak.dev/seat", "a").status().message(), HasSubstr("no agent has answered yet"));
  start_agent();
  wait_for_line("2 of 2 seats are healthy");
  const std::string pipe = "CUDA_MPS_PIPE_DIRECTORY=" + sandbox_.file("d/b/pipe");
  EXPECT_THAT(environment_in(create("firebreak.dev/seat", "b")), Contains(pipe));
  runtime_ = std::make_unique<RuntimeStandIn>(nri_socket());
  wait_for_line("stand-in 1.0 asks for each container", 2);
  EXPECT_THAT(environment_in(create("firebreak.dev/seat", "b")), Contains(pipe));
  EXPECT_THAT(create("firebreak.dev/seat", "z").status().message(), HasSubstr("there is no domain 'z'"));
  plugin_->actor->signal(SIGTERM);
  wait_for_end(*plugin_);
  EXPECT_EQ(plugin_->exit_status(), 0);
}

// Its containers' programs join by themselves, and nobody but their environment says where they are. With
// another domain's fault the agent would take the wrong one of the two for dead.
TEST_F(PodsByAnnotation, ThatJoinByThemselvesAreKnownInTheDomainsThatTheirEnvironmentNames) {
  start_agent();
  const auto start_member = [&](const std::string& tenant, const std::string& role,
                                const std::string& domain) {
    start({program("firebreak-decode"), "--steps", "100000", "--pace-ms", "20", "--output",
           sandbox_.file(tenant)},
          {{"FIREBREAK_SOCKET", sandbox_.file("d/tenants.sock")},
           {"FIREBREAK_TENANT", tenant},
           {"FIREBREAK_ROLE", role},
           {"FIREBREAK_CUDA_LIBRARY", program("../lib/softgpu/libcuda.so.1")},
           {"CUDA_MPS_PIPE_DIRECTORY", sandbox_.file("d/" + domain + "/pipe")}});
  };
  for (const auto& [tenant, active, standby] :
       {std::tuple<std::string, std::string, std::string>{"n.p", "b", "a"}, {"n.q", "a", "b"}}) {
    start_member(tenant, "active", active);
    wait_for_status(tenant, [](const nlohmann::json& now) { return now["committed_steps"] > 1; });
    start_member(tenant, "standby", standby);
    wait_for_status(tenant, [](const nlohmann::json& now) { return now["standby_state"] == "ready"; });
    EXPECT_EQ(status_of(tenant)["active"]["domain"], active);
    EXPECT_EQ(status_of(tenant)["standby"]["domain"], standby);
  }
  Player& rogue = start({program("firebreak-lab"), "inject", "misaligned-load"},
                        {{"CUDA_MPS_PIPE_DIRECTORY", sandbox_.file("d/b/pipe")}});
  wait_for_end(rogue);
  wait_for_status("n.p", [](const nlohmann::json& now) { return now["epoch"] == 1; });
  EXPECT_EQ(status_of("n.p")["active"]["domain"], "a");
  EXPECT_EQ(status_of("n.q")["epoch"], 0);
  EXPECT_EQ(command({"shutdown", "--force"}).status.exit_code, 0);
  wait_for_end(*agent_);
  agent_ = nullptr;
}

// Each breaks the connection off, and is no reason to end or to give a wrong answer in the next one.
TEST_F(PodsByAnnotation, OutliveARuntimeThatSpeaksNonsense) {
  const std::string call = nri::call_bytes(99, "CreateContainer", "x");
  const std::string endless_frame("\0\0\0\1\xff\xff\xff\xff", 8);
  const std::string endless_message("\0\0\0\1\0\0\0\x0a\xff\xff\xff\xff\0\0\0\1\1\0", 18);
  const std::string answer_to_nobody = nri::encode({nri::runtime_connection, 77, 2, 0, "x"});
  const std::string no_call = nri::encode({nri::plugin_connection, 77, 200, 0, "x"});
  start_agent();
  start_plugin();
  runtime_ = std::make_unique<RuntimeStandIn>(nri_socket());
  const std::string taken = "stand-in 1.0 asks for each container";
  const std::string pipe = "CUDA_MPS_PIPE_DIRECTORY=" + sandbox_.file("d/b/pipe");
  wait_for_line("2 of 2 seats are healthy");
  std::ptrdiff_t times = 1;
  for (const std::string& nonsense : {call.substr(0, 5), call.substr(0, 12), call.substr(0, call.size() - 1),
                                      endless_frame, endless_message, answer_to_nobody, no_call,
                                      std::string("GET / HTTP/1.1\r\n\r\n"), std::string(100'000, '\xff')}) {
    wait_for_line(taken, times++);
    EXPECT_THAT(environment_in(create("firebreak.dev/seat", "b")), Contains(pipe));
    runtime_->send(nonsense);
    if (call.starts_with(nonsense)) runtime_->hang_up();  // it waits for the rest
    go_on_until("the end of the connection", [&] { return !runtime_->has_plugin(); });
  }
  wait_for_line(taken, times);
  EXPECT_THAT(environment_in(create("firebreak.dev/seat", "b")), Contains(pipe));
}

// What is of a connection that we do not have, or is empty, and what comes twice.
TEST_F(PodsByAnnotation, GetTheirSeatsBesideWhatIsOfNobody) {
  start_agent();
  start_plugin();
  runtime_ = std::make_unique<RuntimeStandIn>(nri_socket());
  wait_for_line("stand-in 1.0 asks for each container");
  wait_for_line("2 of 2 seats are healthy");
  const std::string pipe = "CUDA_MPS_PIPE_DIRECTORY=" + sandbox_.file("d/b/pipe");
  runtime_->send(std::string("\0\0\0\x07\0\0\0\3abc", 11) + std::string("\0\0\0\1\0\0\0\0", 8));
  EXPECT_THAT(environment_in(create("firebreak.dev/seat", "b")), Contains(pipe));
  const std::string twice = nri::call_bytes(101, "CreateContainer", "");
  runtime_->send(twice);
  go_on_until("the first answer", [&] { return runtime_->answer(101).has_value(); });
  EXPECT_EQ(runtime_->answer(101)->status().code(), 0);
  runtime_->send(twice);
  go_on_until("the second answer", [&] { return runtime_->answer(101)->status().code() != 0; });
  EXPECT_THAT(runtime_->answer(101)->status().message(), HasSubstr("come once"));
}

}  // namespace
}  // namespace firebreak::tests
