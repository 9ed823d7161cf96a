// SPDX-License-Identifier: Apache-2.0
#include "ground/os/helper_process.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <signal.h>

#include <optional>
#include <string>
#include <vector>

#include "ground/os/event_loop.h"
#include "ground/os/file.h"
#include "ground/os/memory.h"
#include "ground/os/processes.h"
#include "ground/os/real_kernel.h"
#include "ground/os/self.h"
#include "tests/doubles/os/orphan_test_support.h"

namespace firebreak::os {
namespace {

constexpr Milliseconds long_enough{60'000};

/// The program that these tests start is test_helper.cpp.
struct HelperProcesses : testing::Test {
  void SetUp() override {
    auto started = HelperProcess::start({FIREBREAK_TEST_HELPER}, long_enough);
    ASSERT_TRUE(started) << started.error().message;
    helper = std::move(*started);
  }
  Result<HelperAnswer> ask(const std::string& question, std::vector<int> attached = {}) {
    return helper->ask(question, attached, long_enough);
  }
  static void expect_end(const Fd& of) {
    const int number = of.get();
    ASSERT_GE(number, 0);
    EXPECT_FALSE(poll_readable(std::span(&number, 1), long_enough).value().empty());
  }
  std::unique_ptr<HelperProcess> helper;
};

TEST_F(HelperProcesses, AnswersWithTextAndDescriptors) {
  const Fd file = memory_file_with("theirs").value();
  const auto answer = ask("quick echo", {file.get()});
  ASSERT_TRUE(answer);
  EXPECT_EQ(answer->text, "quick echo");
  ASSERT_EQ(answer->descriptors.size(), 1U);
  EXPECT_EQ(content_of(answer->descriptors.front().get()).value(), "theirs");
  EXPECT_EQ(ask("slow echo")->text, "slow echo");
}

TEST_F(HelperProcesses, SaysWhyNot) {
  EXPECT_EQ(ask("no question").error().code, ErrorCode::InvalidArgument);
  EXPECT_EQ(ask("quick refusal").error().code, ErrorCode::NotFound);
  EXPECT_THAT(ask("slow refusal").error().message, testing::HasSubstr("there is none"));
}

TEST_F(HelperProcesses, WhoWaitsKeepsNobodyElseFromAnAnswer) {
  const auto pipe = make_pipe().value();
  const int attached = pipe.reading.get();
  EXPECT_EQ(helper->ask("slow wait", std::span(&attached, 1), Milliseconds(0)).error().code,
            ErrorCode::Timeout);
  EXPECT_TRUE(ask("quick echo"));
  EXPECT_TRUE(ask("slow echo"));
}

TEST_F(HelperProcesses, DoesNotDoMoreAtOnceThanItMay) {
  const auto pipe = make_pipe().value();
  const int attached = pipe.reading.get();
  for (std::size_t i = 0; i < HelperProcess::most_at_once; ++i)
    (void)helper->ask("slow wait", std::span(&attached, 1), Milliseconds(0));
  EXPECT_EQ(ask("slow echo").error().code, ErrorCode::ResourceExhausted);
  EXPECT_TRUE(ask("quick echo"));
}

TEST_F(HelperProcesses, DoesWhatIsToBeDoneAfterwards) {
  const auto pipe = make_pipe().value();
  const int attached = pipe.writing.get();
  EXPECT_TRUE(ask("slow afterwards", {attached}));
  expect_end(pipe.reading);
}

TEST_F(HelperProcesses, EndsWithWhoAsks) {
  const Fd process = RealKernel().pidfd_open(helper->pid()).value();
  helper.reset();
  expect_end(process);
}

TEST_F(HelperProcesses, EndsWithWhoStartedItAlsoWhereOthersHaveItsSocket) {
  if (!is_root()) GTEST_SKIP() << "only root becomes another user";
  std::unique_ptr<HelperProcess> theirs;
  EXPECT_TRUE(ends_with_who_started_it([&theirs] {
    theirs = HelperProcess::start({FIREBREAK_TEST_HELPER}, long_enough).value();
    return theirs->pid();
  }));
}

TEST_F(HelperProcesses, DoesNotEndWhereOthersAreToldTo) {
  for (const int each : {SIGTERM, SIGINT, SIGHUP}) ::kill(helper->pid(), each);
  EXPECT_TRUE(ask("quick echo"));
}

TEST_F(HelperProcesses, OneThatHasEndedIsSeen) {
  ::kill(helper->pid(), SIGKILL);
  expect_end(helper->process());
  EXPECT_EQ(ask("quick echo").error().code, ErrorCode::Unavailable);
}

TEST(HelperProcessStart, AProgramThatSaysNothingIsNone) {
  EXPECT_FALSE(HelperProcess::start({"true"}, Milliseconds(60'000)));
}

}  // namespace
}  // namespace firebreak::os
