// SPDX-License-Identifier: Apache-2.0
#include "shared/link/question.h"

#include <gmock/gmock.h>
#include <unistd.h>

#include <future>
#include <optional>

#include "ground/os/file.h"
#include "ground/os/socket.h"

namespace firebreak::link {
namespace {

constexpr Milliseconds question_patience{20'000};

/// The test is the agent.
class Question : public testing::Test {
 protected:
  void ask(Milliseconds timeout = question_patience) {
    answer_ = std::async(std::launch::async,
                         [this, timeout] { return ask_once(path_, abi::GiveCoreDumpPipe{}, timeout); });
    auto accepted = listener_.accept(question_patience);
    ASSERT_TRUE(accepted);
    asker_.emplace(std::move(*accepted));
    const auto received = asker_->receive(question_patience).value();
    const auto letter =
        abi::decode_letter({reinterpret_cast<const char*>(received.bytes.data()), received.bytes.size()});
    EXPECT_TRUE(std::holds_alternative<abi::GiveCoreDumpPipe>(letter->message));
    number_ = letter->number;
  }
  void say(const std::string& text, int descriptor = -1) {
    const std::vector<int> descriptors(descriptor < 0 ? 0 : 1, descriptor);
    ASSERT_TRUE(asker_->send(std::as_bytes(std::span(text)), descriptors, question_patience));
  }
  void say(const abi::Message& message, std::uint64_t number, int descriptor = -1) {
    say(abi::encode(message, number), descriptor);
  }

  os::TemporaryDirectory directory_ = std::move(os::TemporaryDirectory::create().value());
  std::string path_ = directory_.path() + "/agent";
  os::Listener listener_ = std::move(os::Listener::listen(path_, os::SocketAccess::Owner).value());
  std::optional<os::Socket> asker_;
  std::uint64_t number_ = 0;
  std::future<Result<Answer>> answer_;
};

TEST_F(Question, TheAnswerComesWithItsDescriptor) {
  ask();
  say(abi::Event{}, 0);  // nobody asked for that
  say(abi::Done{}, number_ + 1);
  say(abi::CoreDumpPipe{"/a/pipe"}, number_, STDIN_FILENO);
  const auto answer = answer_.get();
  ASSERT_TRUE(answer) << to_string(answer.error());
  EXPECT_EQ(std::get<abi::CoreDumpPipe>(answer->message).path, "/a/pipe");
  EXPECT_EQ(answer->descriptors.size(), 1U);
}

TEST_F(Question, ARefusalIsAFailure) {
  ask();
  say(abi::Refused{"nobody's client yet", false, true}, number_);
  const auto answer = answer_.get();
  ASSERT_FALSE(answer);
  EXPECT_EQ(answer.error().code, ErrorCode::NotYet);
  EXPECT_EQ(answer.error().message, "nobody's client yet");
}

TEST_F(Question, AnAgentThatSaysNothingIsNotWaitedForForEver) {
  ask(Milliseconds(50));
  const auto answer = answer_.get();
  ASSERT_FALSE(answer);
  EXPECT_EQ(answer.error().code, ErrorCode::Timeout);
}

TEST_F(Question, OneThatGoesOrRavesIsAFailure) {
  ask();
  asker_.reset();
  EXPECT_EQ(answer_.get().error().code, ErrorCode::Unavailable);
  ask();
  say("{");
  EXPECT_EQ(answer_.get().error().code, ErrorCode::Protocol);
}

TEST(AskOnce, WhereThereIsNobodyThatIsSaidAtOnce) {
  EXPECT_EQ(ask_once("/nowhere/agent", abi::Done{}, question_patience).error().code, ErrorCode::NotFound);
}

}  // namespace
}  // namespace firebreak::link
