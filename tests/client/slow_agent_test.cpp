// SPDX-License-Identifier: Apache-2.0
/// libfirebreak and the real agent, which stands still whenever the test wants it to: what a question that is
/// answered late leaves behind.
#include <firebreak/firebreak.h>

#include <future>
#include <thread>

#include "program/cuda/stream.h"
#include "shared/abi/commit_journal.h"
#include "tests/client/session_support.h"
#include "tests/doubles/agent/agent_test_support.h"

namespace firebreak::agent {
namespace {

using testing::HasSubstr;
using Word = abi::HandOverWord;

class SlowAgent : public AgentTest {
 protected:
  const cuda::FirstGpu& gpu = testing_agent::soft_gpu();
  cuda::Stream stream = std::move(cuda::Stream::create(gpu.driver()).value());
  std::thread serving;
  fb_session* session = nullptr;

  void serve() {
    serving = std::thread([this] { loop->run(); });
  }
  void stand_still() {
    loop->stop();
    serving.join();
  }
  void SetUp() override {
    serve();
    const fb_join_options options{sizeof options, path.c_str(), "llm", FB_ROLE_ACTIVE};
    ASSERT_EQ(fb_join(&options, &session), FB_OK) << fb_last_error(nullptr);
    stand_still();
  }
  void TearDown() override {
    if (!serving.joinable()) serve();
    fb_leave(session);
    stand_still();
  }
  /// On a thread of its own, with the context that is current here.
  template <class Call>
  std::future<fb_status> meanwhile(Call call) {
    return std::async(std::launch::async, [this, call] {
      EXPECT_TRUE(gpu.context().make_current());
      return call();
    });
  }
  fb_status commit(std::uint64_t step) { return fb_commit(session, stream.handle(), step, "state", 5); }
  /// The tenant's page, with a standby that has joined and is ready.
  struct Standby {
    Peer peer;
    os::Mapping page;
  };
  Standby ready_standby() {
    Peer made = peer();
    os::Mapping page = join(made, "llm", abi::Role::Standby);
    EXPECT_TRUE(std::holds_alternative<abi::Done>(ask(made, abi::Ready{})));
    return {std::move(made), std::move(page)};
  }
  static Word hand_over(const os::Mapping& page) {
    return Word::from(page.as<abi::SharedPage>()->hand_over.load());
  }
};

TEST_F(SlowAgent, ALateAnswerDoesNotMakeTheOnlyProcessAStandby) {
  EXPECT_EQ(fb_release_connection(session, 1), FB_ERROR_TIMEOUT);
  auto stood_down = meanwhile([this] { return fb_stand_down(session); });
  // Both questions wait; the first is answered with Done.
  serve();
  EXPECT_EQ(stood_down.get(), FB_ERROR_REFUSED) << fb_last_error(session);
  EXPECT_EQ(fb_session_role(session), FB_ROLE_ACTIVE);
  EXPECT_EQ(commit(0), FB_OK) << fb_last_error(session);
}

// Its word that its GPU work has ended is a fence only while it waits.
TEST_F(SlowAgent, WhoGaveUpHandingOverIsNotReplacedWhileItWorks) {
  Standby standby = ready_standby();
  EXPECT_EQ(fb_stand_down(session), FB_ERROR_TIMEOUT);
  EXPECT_EQ(hand_over(standby.page).state, Word::State::Withdrawn);
  EXPECT_EQ(commit(0), FB_OK) << fb_last_error(session);
  settle();  // the agent comes to it
  EXPECT_EQ(word(standby.page).epoch, 0u);
  EXPECT_EQ(commit(1), FB_OK) << fb_last_error(session);
  serve();
  EXPECT_EQ(fb_stand_down(session), FB_OK) << fb_last_error(session);
  EXPECT_EQ(fb_session_role(session), FB_ROLE_STANDBY);
  EXPECT_EQ(word(standby.page).epoch, 1u);
}

TEST_F(SlowAgent, WhoseWordWasTakenCommitsNothingBeforeItKnows) {
  Standby standby = ready_standby();
  auto stood_down = meanwhile([this] { return fb_stand_down(session); });
  while (hand_over(standby.page).state != Word::State::Offered) std::this_thread::yield();
  auto& its = standby.page.as<abi::SharedPage>()->hand_over;
  const Word offered = hand_over(standby.page);
  its.store(Word{0, offered.number, Word::State::Taken}.raw());  // an agent that stands still just then
  EXPECT_EQ(stood_down.get(), FB_ERROR_TIMEOUT);
  EXPECT_EQ(commit(0), FB_ERROR_FENCED);
  serve();  // and goes on
  EXPECT_EQ(fb_stand_down(session), FB_OK) << fb_last_error(session);
  EXPECT_EQ(fb_session_role(session), FB_ROLE_STANDBY);
  EXPECT_EQ(word(standby.page).epoch, 1u);
}

TEST_F(SlowAgent, MemoryThatWasPublishedLateIsTheSameForBoth) {
  std::uint64_t address = 0;
  // The agent is to come to the first question, whether there is such an allocation, and not to the second
  // one. It may come to something else instead, then once more.
  fb_status another_size = FB_ERROR_TIMEOUT;
  for (int tries = 0; tries < 5 && another_size == FB_ERROR_TIMEOUT; ++tries) {
    settle();
    auto allocated = meanwhile([&] { return fb_alloc(session, "state", 1, 0, &address); });
    loop->run_once(std::nullopt);
    EXPECT_EQ(allocated.get(), FB_ERROR_TIMEOUT);
    another_size = fb_alloc(session, "state", 3 << 20, 0, &address);
  }
  EXPECT_EQ(another_size, FB_ERROR_INVALID_ARGUMENT);
  settle();
  serve();
  ASSERT_EQ(fb_alloc(session, "state", 1, 0, &address), FB_OK) << fb_last_error(session);
  stand_still();
  ASSERT_TRUE(stream.write_value64(address, 0x1234));
  ASSERT_TRUE(stream.synchronize());
  Peer standby = peer();
  standby.send(abi::Join{"llm", abi::Role::Standby}, -1, 1);
  standby.send(abi::GiveAllocation{"state"}, -1, 2);
  settle();
  ASSERT_TRUE(standby.receive());
  const auto given = standby.receive();
  ASSERT_TRUE(given && given->descriptors.size() == 1);
  std::uint64_t seen = 0;
  EXPECT_EQ(::pread(given->descriptors[0].get(), &seen, sizeof(seen), 0), ssize_t{sizeof(seen)});
  EXPECT_EQ(seen, 0x1234u);
}

// Whoever wrote it to the end that it asked for would write past the memory.
TEST_F(SlowAgent, MemoryThatIsThereIsNotTakenForMoreThanItIs) {
  serve();
  std::uint64_t address = 0, again = 0;
  ASSERT_EQ(fb_alloc(session, "state", 1, 0, &address), FB_OK) << fb_last_error(session);
  EXPECT_EQ(fb_alloc(session, "state", 1 << 30, 0, &again), FB_ERROR_INVALID_ARGUMENT);
  EXPECT_THAT(fb_last_error(session), HasSubstr("has 2097152 bytes"));
  EXPECT_EQ(fb_alloc(session, "state", 2 << 20, 0, &again), FB_OK) << "as much as it has";
  EXPECT_EQ(again, address);
  stand_still();
}

}  // namespace
}  // namespace firebreak::agent
