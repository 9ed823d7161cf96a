// SPDX-License-Identifier: Apache-2.0
/// The link to an agent that answers late, never, twice or in another order: the test is that agent, over a
/// real socket.
#include "shared/link/agent_link.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <poll.h>
#include <unistd.h>

#include <array>
#include <future>

#include "ground/os/file.h"
#include "ground/os/memory.h"

namespace firebreak::link {
namespace {

using testing::HasSubstr;

constexpr Milliseconds patience{60'000};
constexpr Milliseconds at_once{0};

struct AgentLinkTest : testing::Test {
  os::TemporaryDirectory directory = std::move(os::TemporaryDirectory::create().value());
  os::Listener listener =
      std::move(os::Listener::listen(directory.path() + "/agent", os::SocketAccess::Owner).value());
  std::unique_ptr<AgentLink> link = std::move(AgentLink::connect(listener.path()).value());
  os::Socket agent = std::move(listener.accept(patience).value());

  abi::Letter hear() {
    const auto got = agent.receive(patience).value();
    const std::string_view text(reinterpret_cast<const char*>(got.bytes.data()), got.bytes.size());
    return abi::decode_letter(text).value();
  }
  void say(const abi::Message& message, std::uint64_t number, int descriptor = -1) {
    const std::string text = abi::encode(message, number);
    const std::span<const int> descriptors(&descriptor, descriptor >= 0 ? 1 : 0);
    ASSERT_TRUE(agent.send(std::as_bytes(std::span(text)), descriptors, patience));
  }
  /// Asked, and given up at once.
  std::uint64_t ask_in_vain() {
    EXPECT_EQ(link->ask(abi::StandDown{}, -1, at_once).error().code, ErrorCode::Timeout);
    return hear().number;
  }
  std::future<Result<Answer>> ask(const abi::Message& message) {
    return std::async(std::launch::async, [this, message] { return link->ask(message, -1, patience); });
  }
};

std::string refusal(std::future<Result<Answer>> answer) {
  const auto got = answer.get();
  return got ? "(not refused)" : got.error().message;
}

TEST_F(AgentLinkTest, ALateAnswerIsNotTheNextQuestions) {
  const std::uint64_t first = ask_in_vain();
  auto second = ask(abi::StandDown{});
  const std::uint64_t number = hear().number;
  EXPECT_NE(number, first);
  // The late answer has been heard, and thrown away, when what came with it is closed: before the right
  // answer comes.
  std::array<int, 2> ends{};
  ASSERT_EQ(::pipe(ends.data()), 0);
  const os::Fd reading(ends[0]);
  {
    const os::Fd writing(ends[1]);
    say(abi::Done{}, first, writing.get());
  }
  ::pollfd closed{reading.get(), POLLIN, 0};
  EXPECT_EQ(::poll(&closed, 1, 10'000), 1) << "whoever asked next has it";
  say(abi::Refused{"no standby is ready"}, number);
  EXPECT_EQ(refusal(std::move(second)), "no standby is ready");
}

TEST_F(AgentLinkTest, ALateAnswersDescriptorIsClosed) {
  const std::uint64_t first = ask_in_vain();
  std::array<int, 2> ends{};
  ASSERT_EQ(::pipe(ends.data()), 0);
  const os::Fd reading(ends[0]);
  {
    const os::Fd writing(ends[1]);
    say(abi::Done{}, first, writing.get());
  }
  auto second = ask(abi::GiveListener{});
  say(abi::Refused{"there is none"}, hear().number);
  EXPECT_EQ(refusal(std::move(second)), "there is none");
  char byte = 0;
  EXPECT_EQ(::read(reading.get(), &byte, 1), 0) << "nobody has the other end any more";
}

TEST_F(AgentLinkTest, AnAnswerThatComesTwiceCountsOnce) {
  auto first = ask(abi::Ready{});
  const std::uint64_t number = hear().number;
  say(abi::Done{}, number);
  EXPECT_TRUE(first.get());
  say(abi::Done{}, number);
  auto second = ask(abi::StandDown{});
  say(abi::Done{}, number);
  say(abi::Refused{"no"}, hear().number);
  EXPECT_EQ(refusal(std::move(second)), "no");
}

TEST_F(AgentLinkTest, ARefusalSaysWhetherToAskAgain) {
  const std::vector<std::pair<abi::Refused, ErrorCode>> refusals = {
      {{"no", false, false}, ErrorCode::PermissionDenied},
      {{"no room", true, false}, ErrorCode::ResourceExhausted},
      {{"not now", false, true}, ErrorCode::NotYet}};
  for (const auto& [refused, code] : refusals) {
    auto asked = ask(abi::StandDown{});
    say(refused, hear().number);
    const auto answer = asked.get();
    ASSERT_FALSE(answer);
    EXPECT_EQ(answer.error().code, code) << refused.reason;
  }
}

TEST_F(AgentLinkTest, AnswersInAnotherOrderFindTheirQuestion) {
  const std::uint64_t first = ask_in_vain(), second = ask_in_vain();
  auto third = ask(abi::StandDown{});
  const std::uint64_t number = hear().number;
  say(abi::Done{}, second);
  say(abi::Done{}, first);
  say(abi::Done{}, number + 7);  // nobody asked that
  say(abi::Refused{"no"}, number);
  EXPECT_EQ(refusal(std::move(third)), "no");
}

TEST_F(AgentLinkTest, WhatIsSaidUnaskedIsNoAnswer) {
  auto asked = ask(abi::StandDown{});
  const std::uint64_t number = hear().number;
  say(abi::Allocation{"state", 0, 0, abi::Memory::State}, 0);
  say(abi::Event{}, 0);
  say(abi::HandOver{"llm"}, 0);
  say(abi::Refused{"no"}, number);
  EXPECT_EQ(refusal(std::move(asked)), "no");
}

TEST_F(AgentLinkTest, TheAnswerToWhatWasOnlyToldIsNoAnswer) {
  ASSERT_TRUE(link->tell(abi::EndTenant{"llm", 0}));
  const std::uint64_t told = hear().number;
  auto asked = ask(abi::StandDown{});
  const std::uint64_t number = hear().number;
  say(abi::Ended{"gone"}, told);
  say(abi::Refused{"no"}, number);
  EXPECT_EQ(refusal(std::move(asked)), "no");
}

TEST_F(AgentLinkTest, AnAgentThatNumbersNothingIsRefused) {
  auto asked = ask(abi::Ready{});
  hear();
  say(abi::Done{}, 0);
  EXPECT_THAT(refusal(std::move(asked)), HasSubstr("older than this program"));
  auto again = ask(abi::Ready{});
  hear();
  say(abi::Refused{"too many connections"}, 0);
  EXPECT_EQ(refusal(std::move(again)), "too many connections");
}

TEST_F(AgentLinkTest, TheNextAgentIsAskedTheSameUnderTheSameNumber) {
  link->come_back({listener.path(), {"llm", {}}, patience});
  auto asked = ask(abi::StandDown{});
  const std::uint64_t number = hear().number;
  agent = os::Socket(os::Fd());
  agent = std::move(listener.accept(patience).value());
  const abi::Letter rejoin = hear();
  EXPECT_TRUE(std::holds_alternative<abi::Rejoin>(rejoin.message));
  say(abi::Done{}, rejoin.number);
  const abi::Letter again = hear();
  EXPECT_EQ(again.number, number);
  EXPECT_TRUE(std::holds_alternative<abi::StandDown>(again.message));
  say(abi::Done{}, number);
  EXPECT_TRUE(asked.get());
}

TEST_F(AgentLinkTest, AnOlderAgentIsNoneToComeBackTo) {
  std::promise<void> lost;
  link->come_back({listener.path(), {"llm", {}}, patience});
  link->on_lost([&lost] { lost.set_value(); });
  agent = os::Socket(os::Fd());
  agent = std::move(listener.accept(patience).value());
  hear();
  say(abi::Done{}, 0);
  lost.get_future().wait();
  EXPECT_TRUE(link->lost());
}

TEST_F(AgentLinkTest, AnAllocationIsAskedForAgainWhenThereIsNewsOfIt) {
  auto taken =
      std::async(std::launch::async, [this] { return link->take_allocation("state", Milliseconds(-1)); });
  say(abi::Done{}, hear().number);
  say(abi::Allocation{"other", 1, 1, abi::Memory::State}, 0);
  say(abi::Allocation{"state", 2, 3, abi::Memory::State}, 0);
  const abi::Letter again = hear();
  EXPECT_EQ(std::get<abi::GiveAllocation>(again.message).name, "state");
  say(abi::Allocation{"state", 2, 3, abi::Memory::Weights}, again.number,
      os::create_memory_file("any", 1)->get());
  const auto got = taken.get();
  ASSERT_TRUE(got) << got.error().message;
  EXPECT_EQ(got->address, 2u);
  EXPECT_EQ(got->memory, abi::Memory::Weights);
  EXPECT_TRUE(got->descriptor);
}

TEST_F(AgentLinkTest, WhatIsNotThereInTimeIsNotFound) {
  auto taken = std::async(std::launch::async, [this] { return link->take_allocation("state", at_once); });
  say(abi::Done{}, hear().number);
  EXPECT_EQ(taken.get().error().code, ErrorCode::NotFound);
}

TEST_F(AgentLinkTest, AStatusMayBeLongerThanAMessage) {
  const std::string all(3 * abi::wire_bytes_max, '-');
  auto asked = std::async(std::launch::async, [this] { return link->status(); });
  say(abi::StatusDocument{}, hear().number, os::memory_file_with(all)->get());
  EXPECT_EQ(asked.get().value(), all);
  auto short_one = std::async(std::launch::async, [this] { return link->status(); });
  say(abi::StatusDocument{"{}"}, hear().number);
  EXPECT_EQ(short_one.get().value(), "{}");
}

TEST_F(AgentLinkTest, ComesBackAlsoWhereTheAgentHadGoneBeforeItWasSaidHow) {
  agent.hang_up();
  while (!link->lost()) {
  }
  link->come_back({listener.path(), {"llm", "token"}, patience});
  agent = std::move(listener.accept(patience).value());
  const abi::Letter rejoin = hear();
  EXPECT_EQ(std::get<abi::Rejoin>(rejoin.message).token, "token");
  say(abi::Done{}, rejoin.number);
  auto answer = ask(abi::StandDown{});
  say(abi::Done{}, hear().number);
  EXPECT_TRUE(answer.get());
  EXPECT_FALSE(link->lost());
}

}  // namespace
}  // namespace firebreak::link
