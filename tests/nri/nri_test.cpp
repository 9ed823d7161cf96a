// SPDX-License-Identifier: Apache-2.0
// firebreak-nri as a program: a real agent on the software GPU, and a stand-in of the runtime.
#include <signal.h>

#include "nri/runtime_stand_in.h"
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

}  // namespace
}  // namespace firebreak::tests
