// SPDX-License-Identifier: Apache-2.0
// The order in which a process is told to end, with a kernel and MPS domains that are not real.
#include "agent/loop/orderly_end.h"

#include <gmock/gmock.h>
#include <signal.h>

#include "tests/doubles/agent/agent_test_support.h"
#include "tests/doubles/os/fake_kernel.h"

namespace firebreak::agent {
namespace {

using testing::ElementsAre;
using testing::IsEmpty;

constexpr pid_t client = 4711;

class OrderlyEndTest : public testing::Test {
 protected:
  OrderlyEndTest() {
    kernel_.add_process(client);
    process_ = std::make_shared<const os::Fd>(kernel_.pidfd_open(client).value());
    is("R");
    plan_.pid = client;
    plan_.domain = "a";
    plan_.terminate_timeout = std::chrono::minutes(10);
    plan_.grace = std::chrono::minutes(10);
  }
  void is(const std::string& state) {
    kernel_.set_file("/proc/4711/stat", "4711 (tenant) " + state + " 1 1 1 0 -1 0 0 0 0");
  }
  void begin() {
    end_ = OrderlyEnd::begin(*loop_, kernel_, domains_, process_, plan_, [this] {
             signals_when_harmless_ = signals();
           }).value();
  }
  std::vector<int> signals() const {
    std::vector<int> numbers;
    for (const os::SentSignal& sent : kernel_.signals()) numbers.push_back(sent.signal);
    return numbers;
  }
  bool run_until(const std::function<bool()>& done) {
    const Monotonic deadline = SystemClock().now() + std::chrono::seconds(30);
    while (!done() && SystemClock().now() < deadline) loop_->run_once(Milliseconds(50));
    return done();
  }

  os::FakeKernel kernel_;
  FakeDomains domains_;
  std::unique_ptr<os::EventLoop> loop_ = std::move(os::EventLoop::create().value());
  EndPlan plan_;
  std::shared_ptr<const os::Fd> process_;
  std::shared_ptr<OrderlyEnd> end_;
  std::optional<std::vector<int>> signals_when_harmless_;
};

TEST_F(OrderlyEndTest, MpsIsAskedFirst) {
  begin();
  EXPECT_THAT(domains_.asked, ElementsAre("a"));
  EXPECT_THAT(signals(), IsEmpty());
  domains_.terminations.at(client)({});
  EXPECT_THAT(signals(), ElementsAre(SIGTERM));
  EXPECT_THAT(signals_when_harmless_, testing::Optional(IsEmpty()));
  EXPECT_TRUE(end_->harmless());
  EXPECT_EQ(end_->steps(), "MPS took it off the GPU, SIGTERM");
}

TEST_F(OrderlyEndTest, WhoIsNoClientHasNothingOnTheGpu) {
  begin();
  domains_.terminations.at(client)(fail(ErrorCode::NotFound, "Invalid process"));
  EXPECT_THAT(signals(), ElementsAre(SIGTERM));
  EXPECT_TRUE(end_->harmless());
  EXPECT_EQ(end_->steps(), "no client of MPS, SIGTERM");
}

TEST_F(OrderlyEndTest, MpsThatRefusesIsNotWaitedFor) {
  begin();
  domains_.terminations.at(client)(fail(ErrorCode::Unavailable, "no daemon"));
  EXPECT_THAT(signals(), ElementsAre(SIGTERM));
  EXPECT_FALSE(end_->harmless());
  EXPECT_FALSE(signals_when_harmless_.has_value());
}

TEST_F(OrderlyEndTest, MpsThatNeverAnswersIsWaitedForNoLongerThanThat) {
  plan_.terminate_timeout = Milliseconds(1);
  begin();
  ASSERT_TRUE(run_until([&] { return !signals().empty(); }));
  EXPECT_THAT(signals(), ElementsAre(SIGTERM));
  EXPECT_FALSE(end_->harmless());
  domains_.terminations.at(client)({});  // the answer comes at last
  EXPECT_THAT(signals(), ElementsAre(SIGTERM));
  EXPECT_EQ(end_->steps(), "MPS did not take it off the GPU, SIGTERM");
}

TEST_F(OrderlyEndTest, WhoDoesNotListenIsKilled) {
  plan_.grace = Milliseconds(1);
  begin();
  domains_.terminations.at(client)({});
  ASSERT_TRUE(run_until([&] { return signals().size() == 2; }));
  EXPECT_THAT(signals(), ElementsAre(SIGTERM, SIGKILL));
  EXPECT_EQ(end_->steps(), "MPS took it off the GPU, SIGTERM, SIGKILL");
}

TEST_F(OrderlyEndTest, MpsIsNeverAskedAboutWhoCannotAnswerIt) {
  for (const std::string state : {"T", "t", "Z", "X"}) {
    is(state);
    begin();
    EXPECT_THAT(domains_.asked, IsEmpty()) << state;
    ASSERT_THAT(signals(), testing::Not(IsEmpty())) << state;
    EXPECT_EQ(signals().back(), SIGTERM);
    EXPECT_FALSE(end_->harmless());
  }
  EXPECT_EQ(signals().size(), 4u);
}

TEST_F(OrderlyEndTest, AFaultThatIsUnderWayPassesFirst) {
  plan_.fault_lasts = Milliseconds(1);
  begin();
  EXPECT_THAT(domains_.asked, IsEmpty());
  ASSERT_TRUE(run_until([&] { return !domains_.asked.empty(); }));
  EXPECT_THAT(signals(), IsEmpty());
  EXPECT_EQ(end_->steps(), "waited for a fault to pass");
}

TEST_F(OrderlyEndTest, AnAnswerToNobodyIsNothing) {
  begin();
  end_.reset();
  domains_.terminations.at(client)({});
  EXPECT_THAT(signals(), IsEmpty());
}

TEST_F(OrderlyEndTest, WhoIsGoneIsSaid) {
  kernel_.exit_process(client, {0, 0});
  (void)kernel_.try_wait(client);
  const auto end = OrderlyEnd::begin(*loop_, kernel_, domains_, process_, plan_, [] {});
  ASSERT_FALSE(end);
  EXPECT_EQ(end.error().code, ErrorCode::NotFound);
}

}  // namespace
}  // namespace firebreak::agent
