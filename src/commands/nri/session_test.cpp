// SPDX-License-Identifier: Apache-2.0
#include "commands/nri/session.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <nri.pb.h>
#include <ttrpc.pb.h>
#include "tests/doubles/nri/runtime_stand_in.h"

namespace firebreak::nri {
namespace {

namespace api = ::nri::pkg::api::v1alpha1;

using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;
using testing::SizeIs;

constexpr int invalid_argument = 3;
constexpr int unimplemented = 12;

struct Answer {
  std::uint32_t stream = 0;
  ttrpc::Response response;
  int code() const { return response.status().code(); }
};

class NriSession : public testing::Test {
 protected:
  Result<std::optional<seats::SeatGrant>> seat = std::nullopt;
  std::vector<Newcomer> asked;
  PluginSession session{[this](const Newcomer& newcomer) {
    asked.push_back(newcomer);
    return seat;
  }};

  std::vector<Answer> answers_to(const std::string& bytes) {
    const auto sent = session.receive(bytes);
    EXPECT_TRUE(sent) << (sent ? "" : to_string(sent.error()));
    FrameReader reader;
    std::vector<Answer> all;
    const auto messages = reader.read(sent.value_or("")).value();
    for (const TtrpcMessage& message : messages) {
      EXPECT_EQ(message.connection, plugin_connection);
      EXPECT_EQ(message.type, 2);
      Answer answer{message.stream, {}};
      EXPECT_TRUE(answer.response.ParseFromString(message.data));
      all.push_back(answer);
    }
    EXPECT_FALSE(reader.is_in_midst());
    return all;
  }
  Answer answer_to(const std::string& bytes) {
    const auto all = answers_to(bytes);
    EXPECT_THAT(all, SizeIs(1));
    return all.empty() ? Answer{} : all.front();
  }
  ErrorCode end_by(const std::string& bytes) {
    const auto sent = session.receive(bytes);
    EXPECT_FALSE(sent);
    return sent ? ErrorCode::Internal : sent.error().code;
  }
  static std::string taken(std::uint32_t stream = 1) {
    return encode({runtime_connection, stream, 2, 0, ttrpc::Response().SerializeAsString()});
  }
  static std::string configuration(std::uint32_t stream) {
    api::ConfigureRequest request;
    request.set_runtime_name("containerd");
    request.set_runtime_version("v1.7.24");
    return call_bytes(stream, "Configure", request.SerializeAsString());
  }
  static std::string newcomer(std::uint32_t stream) {
    api::CreateContainerRequest request;
    request.mutable_pod()->set_namespace_("ml");
    request.mutable_pod()->set_name("llm-0");
    request.mutable_pod()->set_uid("u1");
    (*request.mutable_pod()->mutable_annotations())["firebreak.dev/seat"] = "a";
    request.mutable_container()->set_name("main");
    request.mutable_container()->add_env("A=b");
    request.mutable_container()->add_mounts()->set_destination("/proc");
    return call_bytes(stream, "CreateContainer", request.SerializeAsString());
  }
};

TEST_F(NriSession, RegistersUnderItsNameAndIndex) {
  FrameReader reader;
  const auto sent = reader.read(PluginSession::registration()).value();
  ASSERT_THAT(sent, SizeIs(1));
  EXPECT_EQ(sent[0].connection, runtime_connection);
  EXPECT_EQ(sent[0].stream, 1u);
  ttrpc::Request request;
  ASSERT_TRUE(request.ParseFromString(sent[0].data));
  EXPECT_EQ(request.service() + "/" + request.method(), "nri.pkg.api.v1alpha1.Runtime/RegisterPlugin");
  api::RegisterPluginRequest plugin;
  ASSERT_TRUE(plugin.ParseFromString(request.payload()));
  EXPECT_EQ(plugin.plugin_idx() + "-" + plugin.plugin_name(), "10-firebreak");
}

TEST_F(NriSession, KnowsTheRuntimeOnceItIsTakenAndConfiguredInWhicheverOrder) {
  api::ConfigureResponse configured;
  ASSERT_TRUE(configured.ParseFromString(answer_to(configuration(1)).response.payload()));
  EXPECT_EQ(configured.events(), 8) << "CREATE_CONTAINER alone, the fourth bit";
  EXPECT_EQ(session.runtime(), "");
  EXPECT_THAT(answers_to(taken()), IsEmpty());
  EXPECT_EQ(session.runtime(), "containerd v1.7.24");
}

TEST_F(NriSession, AsksForTheRestOfAStateThatComesInParts) {
  for (const bool more : {true, false}) {
    api::SynchronizeRequest request;
    request.set_more(more);
    api::SynchronizeResponse response;
    const auto answer = answer_to(call_bytes(more ? 1 : 3, "Synchronize", request.SerializeAsString()));
    ASSERT_TRUE(response.ParseFromString(answer.response.payload()));
    EXPECT_EQ(response.more(), more);
  }
}

// Made while nobody was asked, as while the plugin was started anew.
TEST_F(NriSession, NamesContainersThatRunWithoutTheirSeatAlsoInAStateInParts) {
  api::SynchronizeRequest first;
  first.set_more(true);
  api::PodSandbox& pod = *first.add_pods();
  pod.set_id("p1");
  pod.set_namespace_("ml");
  pod.set_name("llm-0");
  (*pod.mutable_annotations())["firebreak.dev/seat"] = "main=a,done=a,seated=a";
  first.add_pods()->set_id("p2");
  api::SynchronizeRequest second;
  const auto add = [&second](const char* name, const char* of, api::ContainerState state) {
    api::Container& container = *second.add_containers();
    container.set_pod_sandbox_id(of);
    container.set_name(name);
    container.set_state(state);
    return &container;
  };
  add("main", "p1", api::CONTAINER_RUNNING);
  add("seated", "p1", api::CONTAINER_RUNNING)->add_env("FIREBREAK_SOCKET=/s");
  add("done", "p1", api::CONTAINER_STOPPED);
  add("side", "p1", api::CONTAINER_RUNNING);
  add("other", "p2", api::CONTAINER_RUNNING);
  add("stray", "p3", api::CONTAINER_RUNNING);
  answers_to(call_bytes(1, "Synchronize", first.SerializeAsString()) +
             call_bytes(3, "Synchronize", second.SerializeAsString()));
  EXPECT_THAT(session.take_news(),
              ElementsAre("ml/llm-0: main runs without its seat: it was made while nobody "
                          "asked firebreak-nri; make the pod anew"));
  EXPECT_THAT(asked, IsEmpty());
}

TEST_F(NriSession, GivesAContainerItsSeat) {
  seat = seats::SeatGrant{{{"CUDA_MPS_PIPE_DIRECTORY", "/r/a/pipe"}},
                          {{"/host", "/there", true}, {"/dev/shm", "/dev/shm", false, false}}};
  const Answer answer = answer_to(newcomer(1));
  ASSERT_EQ(answer.code(), 0);
  api::CreateContainerResponse response;
  ASSERT_TRUE(response.ParseFromString(answer.response.payload()));
  ASSERT_THAT(response.adjust().env(), SizeIs(1));
  EXPECT_EQ(response.adjust().env(0).key(), "CUDA_MPS_PIPE_DIRECTORY");
  EXPECT_EQ(response.adjust().env(0).value(), "/r/a/pipe");
  ASSERT_THAT(response.adjust().mounts(), SizeIs(2));
  EXPECT_EQ(response.adjust().mounts(0).source(), "/host");
  EXPECT_EQ(response.adjust().mounts(0).destination(), "/there");
  EXPECT_EQ(response.adjust().mounts(0).type(), "bind");
  EXPECT_THAT(response.adjust().mounts(0).options(), ElementsAre("bind", "nosuid", "nodev", "ro"));
  EXPECT_THAT(response.adjust().mounts(1).options(), ElementsAre("bind", "nosuid", "nodev", "rw", "noexec"));
  EXPECT_THAT(session.take_news(), ElementsAre("ml/llm-0: main has a seat, with /r/a/pipe"));
  ASSERT_THAT(asked, SizeIs(1));
  EXPECT_EQ(asked[0].pod_uid, "u1");
  EXPECT_EQ(asked[0].annotations, (Annotations{{"firebreak.dev/seat", "a"}}));
  EXPECT_THAT(asked[0].environment, ElementsAre("A=b"));
  EXPECT_THAT(asked[0].mounted_at, ElementsAre("/proc"));
}

TEST_F(NriSession, LeavesAContainerAloneForWhichNothingIsAsked) {
  const Answer answer = answer_to(newcomer(1));
  EXPECT_EQ(answer.code(), 0);
  EXPECT_EQ(answer.response.payload(), "");
  EXPECT_THAT(session.take_news(), IsEmpty());
}

TEST_F(NriSession, RefusesAContainerWithTheReasonForWhoeverStartsIt) {
  seat = fail(ErrorCode::Unavailable, "domain a takes no clients now", "the kubelet tries again");
  const Answer answer = answer_to(newcomer(1));
  EXPECT_EQ(answer.code(), 14);
  EXPECT_EQ(answer.response.status().message(), "domain a takes no clients now (the kubelet tries again)");
  EXPECT_THAT(
      session.take_news(),
      ElementsAre("ml/llm-0: main is refused: domain a takes no clients now (the kubelet tries again)"));
}

TEST_F(NriSession, AnswersWhatNobodyKnowsAndGoesOn) {
  EXPECT_EQ(answer_to(call_bytes(1, "Fly", "")).code(), unimplemented);
  EXPECT_EQ(answer_to(call_bytes(3, "Configure", "", "some.Service")).code(), unimplemented);
  EXPECT_EQ(answer_to(call_bytes(5, "CreateContainer", "\xff\xff")).code(), invalid_argument);
  EXPECT_EQ(answer_to(encode({plugin_connection, 7, 1, 0, "\xff"})).code(), invalid_argument);
  EXPECT_EQ(answer_to(encode({plugin_connection, 9, 1, remote_open_flag, ""})).code(), unimplemented);
  EXPECT_EQ(answer_to(encode({plugin_connection, 9, 3, 0, "x"})).code(), invalid_argument);
  EXPECT_EQ(answer_to(call_bytes(11, "StateChange", "")).code(), 0);
  EXPECT_EQ(answer_to(call_bytes(13, "Shutdown", "")).code(), 0);
}

TEST_F(NriSession, RefusesStreamIdsThatAreEvenDoubledOrOutOfOrder) {
  EXPECT_EQ(answer_to(call_bytes(5, "Synchronize", "")).code(), 0);
  for (const std::uint32_t bad : {5u, 3u, 6u, 0u}) {
    const Answer answer = answer_to(call_bytes(bad, "Synchronize", ""));
    EXPECT_EQ(answer.code(), invalid_argument) << bad;
    EXPECT_EQ(answer.stream, bad);
  }
  EXPECT_EQ(answer_to(call_bytes(7, "Synchronize", "")).code(), 0);
}

TEST_F(NriSession, AnswersCallsThatComeTogetherInTheirOrder) {
  const auto answers = answers_to(configuration(1) + call_bytes(3, "Fly", "") + newcomer(5));
  ASSERT_THAT(answers, SizeIs(3));
  EXPECT_EQ(answers[0].stream, 1u);
  EXPECT_EQ(answers[1].stream, 3u);
  EXPECT_EQ(answers[2].stream, 5u);
}

TEST_F(NriSession, EndsByARefusal) {
  ttrpc::Response refusal;
  refusal.mutable_status()->set_code(3);
  refusal.mutable_status()->set_message("no plugins here");
  const auto sent = session.receive(encode({runtime_connection, 1, 2, 0, refusal.SerializeAsString()}));
  ASSERT_FALSE(sent);
  EXPECT_EQ(sent.error().message, "the runtime refuses the plugin: no plugins here");
}

TEST_F(NriSession, EndsByAnAnswerOfAnotherStream) { EXPECT_EQ(end_by(taken(3)), ErrorCode::Protocol); }

TEST_F(NriSession, EndsByADoubledAnswer) { EXPECT_EQ(end_by(taken() + taken()), ErrorCode::Protocol); }

TEST_F(NriSession, EndsByACallWhereAnswersCome) {
  EXPECT_EQ(end_by(encode({runtime_connection, 1, 1, 0, ""})), ErrorCode::Protocol);
}

TEST_F(NriSession, EndsByAnAnswerWhereCallsCome) {
  EXPECT_EQ(end_by(encode({plugin_connection, 1, 2, 0, ""})), ErrorCode::Protocol);
}

TEST_F(NriSession, EndsByAnAnswerThatCannotBeRead) {
  EXPECT_EQ(end_by(encode({runtime_connection, 1, 2, 0, "\xff"})), ErrorCode::Protocol);
}

TEST_F(NriSession, SaysInOneShortLineWhateverTheRuntimeIsCalledAndSays) {
  const std::string endless = "a\nb\xc3\xa9" + std::string(99'999, 'x');
  const auto is_short_line = [](const std::string& text) {
    return text.size() < 1'000 && text.find('\n') == std::string::npos;
  };
  EXPECT_PRED1(is_short_line, answer_to(call_bytes(1, endless, "")).response.status().message());
  EXPECT_PRED1(is_short_line, answer_to(call_bytes(3, "Configure", "", endless)).response.status().message());
  api::ConfigureRequest request;
  request.set_runtime_name(endless);
  request.set_runtime_version(endless);
  answer_to(call_bytes(5, "Configure", request.SerializeAsString()));
  answers_to(taken());
  EXPECT_PRED1(is_short_line, session.runtime());
  api::CreateContainerRequest container;
  container.mutable_pod()->set_name(endless);
  container.mutable_pod()->set_namespace_(endless);
  container.mutable_container()->set_name(endless);
  seat = fail(ErrorCode::NotFound, "no");
  answer_to(call_bytes(7, "CreateContainer", container.SerializeAsString()));
  const auto news = session.take_news();
  ASSERT_THAT(news, SizeIs(1));
  EXPECT_PRED1(is_short_line, news[0]);
  PluginSession refused{[](const Newcomer&) { return std::nullopt; }};
  ttrpc::Response refusal;
  refusal.mutable_status()->set_code(3);
  refusal.mutable_status()->set_message(endless);
  const auto end = refused.receive(encode({runtime_connection, 1, 2, 0, refusal.SerializeAsString()}));
  ASSERT_FALSE(end);
  EXPECT_PRED1(is_short_line, to_string(end.error()));
}

TEST_F(NriSession, SaysHowTheConnectionEnded) {
  EXPECT_THAT(session.end().message, HasSubstr("before it took the plugin"));
  answers_to(taken());
  EXPECT_EQ(session.end().message, "the runtime has ended the connection");
  answers_to(newcomer(1).substr(0, 20));
  EXPECT_EQ(session.end().code, ErrorCode::Protocol);
  EXPECT_THAT(session.end().message, HasSubstr("in the midst of a message"));
}

}  // namespace
}  // namespace firebreak::nri
