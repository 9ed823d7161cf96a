// SPDX-License-Identifier: Apache-2.0
// Commits through the C ABI, on the software GPU's own time line.
#include <gmock/gmock.h>

#include "program/cuda/device_buffer.h"
#include "program/cuda/module.h"
#include "tests/client/session_support.h"

namespace firebreak::testing_agent {
namespace {

using testing::HasSubstr;

constexpr const char* counting_ptx = R"(.version 7.0
.target sm_70
.address_size 64

.visible .entry count(.param .u64 counter, .param .u64 steps)
{
  .reg .u64 %at, %steps;
  ld.param.u64 %at, [counter];
  ld.param.u64 %steps, [steps];
  st.release.sys.u64 [%at], %steps;
  ret;
}
)";

struct Commits : SessionTest {
  fb_session* active = join(FB_ROLE_ACTIVE);
  fb_session* standby = join(FB_ROLE_STANDBY);

  ~Commits() override {
    fb_leave(standby);
    fb_leave(active);
  }
  fb_resume promoted() {
    agent->promote();
    fb_resume resume{};
    EXPECT_EQ(fb_wait_promotion(standby, -1, &resume), FB_OK) << fb_last_error(standby);
    return resume;
  }
};

TEST_F(Commits, ChangesReachTheStandby) {
  ASSERT_EQ(commit(active, 0, "token: --, length: 0"), FB_OK);
  ASSERT_EQ(change(active, 1, 7, "17"), FB_OK);
  ASSERT_EQ(change(active, 2, 19, "1; more"), FB_OK);
  gpu_catches_up();
  const fb_resume resume = promoted();
  EXPECT_EQ(resume.epoch, 1u);
  EXPECT_EQ(resume.next_step, 3u);
  EXPECT_EQ(state_of(resume), "token: 17, length: 1; more");
}

TEST_F(Commits, TheSuccessorGoesOnWithChangesOfWhatItFound) {
  ASSERT_EQ(commit(active, 0, "abc"), FB_OK);
  gpu_catches_up();
  ASSERT_EQ(promoted().next_step, 1u);
  ASSERT_EQ(change(standby, 1, 1, "B"), FB_OK);
  gpu_catches_up();
  fb_session* third = join(FB_ROLE_STANDBY);
  agent->promote();
  fb_resume resume{};
  ASSERT_EQ(fb_wait_promotion(third, -1, &resume), FB_OK) << fb_last_error(third);
  EXPECT_EQ(state_of(resume), "aBc");
  EXPECT_EQ(change(standby, 2, 0, "x"), FB_ERROR_FENCED);
  fb_leave(third);
}

TEST_F(Commits, WhoWasReplacedCommitsNothing) {
  ASSERT_EQ(commit(active, 0, "abc"), FB_OK);
  gpu_catches_up();
  EXPECT_EQ(promoted().next_step, 1u);
  EXPECT_EQ(commit(active, 1, "late"), FB_ERROR_FENCED);
  EXPECT_EQ(change(active, 1, 0, "late"), FB_ERROR_FENCED);
  const fb_change late{0, "late", 4};
  EXPECT_EQ(fb_prepare_changes(active, stream.handle(), 1, &late, 1), FB_ERROR_FENCED);
  EXPECT_EQ(fb_heartbeat(active, stream.handle()), FB_ERROR_FENCED);
  gpu_catches_up();
  const abi::SharedMemory& shared = agent->shared();
  EXPECT_EQ(shared.page.areas[0].next_step, 1u);
  EXPECT_EQ(shared.journals[0].entries[1].checksum, 0u) << "nothing was appended";
  EXPECT_EQ(commit(standby, 1, "next"), FB_OK);
}

TEST_F(Commits, AnEpochThatBeginsForSomebodyElseReleasesNobody) {
  ASSERT_EQ(commit(active, 0, "abc"), FB_OK);
  gpu_catches_up();
  agent->begin_epoch();
  fb_resume resume{};
  EXPECT_EQ(fb_wait_promotion(standby, 0, &resume), FB_ERROR_TIMEOUT);
  EXPECT_EQ(fb_session_role(standby), FB_ROLE_STANDBY);
  EXPECT_EQ(fb_commit(standby, stream.handle(), 1, "x", 1), FB_ERROR_INVALID_ARGUMENT);
  EXPECT_EQ(promoted().epoch, 2u);
}

TEST_F(Commits, WhatTheGpuHasNotDoneIsNotCommitted) {
  const auto word = cuda::DeviceBuffer::allocate(gpu.driver(), 64);
  ASSERT_TRUE(word);
  ASSERT_TRUE(stream.write_value64(word->address(), 0));
  ASSERT_EQ(commit(active, 0, "done"), FB_OK);
  gpu_catches_up();
  ASSERT_TRUE(stream.wait_value64(word->address(), 1));
  ASSERT_EQ(change(active, 1, 0, "wait"), FB_OK);
  std::uint64_t next_step = 0;
  ASSERT_EQ(fb_committed(active, &next_step), FB_OK);
  EXPECT_EQ(next_step, 1u);
  const fb_resume resume = promoted();
  EXPECT_EQ(resume.next_step, 1u);
  EXPECT_EQ(state_of(resume), "done");
  const auto other = cuda::Stream::create(gpu.driver());
  ASSERT_TRUE(other->write_value64(word->address(), 1));
  gpu_catches_up();
}

TEST_F(Commits, ManyStepsWaitForTheGpuAndNoneIsLost) {
  ASSERT_EQ(commit(active, 0, std::string(1000, '.')), FB_OK);
  std::string model(1000, '.');
  for (std::uint64_t step = 1; step <= 2000; ++step) {
    const std::string bytes = std::to_string(step);
    ASSERT_EQ(change(active, step, step % 990, bytes), FB_OK) << fb_last_error(active);
    model.replace(step % 990, bytes.size(), bytes);
  }
  gpu_catches_up();
  const fb_resume resume = promoted();
  EXPECT_EQ(resume.next_step, 2001u);
  EXPECT_EQ(state_of(resume), model);
}

TEST_F(Commits, AKernelOfTheTenantsMayCount) {
  const auto module = cuda::Module::load_ptx(gpu.driver(), counting_ptx);
  ASSERT_TRUE(module) << to_string(module.error());
  const auto count = module->function("count");
  ASSERT_TRUE(count);
  std::uint64_t counter = 0;
  ASSERT_EQ(fb_counter(active, &counter), FB_OK) << fb_last_error(active);
  for (std::uint64_t step = 0; step < 600; ++step) {
    const std::string bytes = std::to_string(step);
    const fb_change change{0, bytes.data(), bytes.size()};
    ASSERT_EQ(fb_prepare_changes(active, stream.handle(), step, &change, 1), FB_OK) << fb_last_error(active);
    ASSERT_TRUE(count->launch(stream.handle(), {}, counter, step + 1));
  }
  ASSERT_EQ(change(active, 600, 3, "!"), FB_OK);  // by the library in between
  gpu_catches_up();
  const fb_resume resume = promoted();
  EXPECT_EQ(resume.next_step, 601u);
  EXPECT_EQ(state_of(resume), "599!");
}

TEST_F(Commits, WhatIsPreparedAndNotCountedIsNotCommitted) {
  ASSERT_EQ(commit(active, 0, "counted"), FB_OK);
  const fb_change change{0, "PREPARED", 8};
  ASSERT_EQ(fb_prepare_changes(active, stream.handle(), 1, &change, 1), FB_OK);
  gpu_catches_up();
  const fb_resume resume = promoted();
  EXPECT_EQ(resume.next_step, 1u);
  EXPECT_EQ(state_of(resume), "counted");
}

TEST_F(Commits, ASuccessorRefusesWhatIsCorrupt) {
  ASSERT_EQ(commit(active, 0, "good"), FB_OK);
  gpu_catches_up();
  agent->shared().journals[0].payloads[0] ^= std::byte{1};
  agent->promote();
  fb_resume resume{};
  EXPECT_EQ(fb_wait_promotion(standby, -1, &resume), FB_ERROR_CORRUPT);
  EXPECT_THAT(fb_last_error(standby), HasSubstr("step 0 was committed, but"));
  EXPECT_EQ(fb_session_role(standby), FB_ROLE_STANDBY);
}

TEST_F(Commits, WhatFailedCanBeTriedAgainWithTheSameStep) {
  EXPECT_EQ(commit(active, 5, "out of order"), FB_ERROR_INVALID_ARGUMENT);
  EXPECT_THAT(fb_last_error(active), HasSubstr("step 5 out of order; 0 is next"));
  EXPECT_EQ(change(active, 0, FB_STATE_BYTES_MAX, "x"), FB_ERROR_INVALID_ARGUMENT);
  EXPECT_EQ(commit(standby, 0, "x"), FB_ERROR_INVALID_ARGUMENT);
  ASSERT_EQ(commit(active, 0, "in order"), FB_OK);
  EXPECT_STREQ(fb_last_error(active), "");
  gpu_catches_up();
  EXPECT_EQ(state_of(promoted()), "in order");
}

TEST_F(SessionTest, AnAgentOfAnotherVersionIsRefused) {
  const auto other = SmallAgent::start({.version = abi::shared_page_version - 1}).value();
  fb_session* session = nullptr;
  EXPECT_EQ(join(*other, FB_ROLE_ACTIVE, &session), FB_ERROR_CORRUPT);
  EXPECT_STREQ(fb_last_error(nullptr), "the agent's shared page has version 2, this library knows 3");
  EXPECT_EQ(session, nullptr);
}

TEST_F(SessionTest, AnAgentWhoseMemoryIsMissingOrCouldShrinkIsRefused) {
  for (const SmallAgent::Memory& memory :
       {SmallAgent::Memory{.is_of_fixed_size = false}, SmallAgent::Memory{.is_sent = false}}) {
    const auto other = SmallAgent::start(memory).value();
    fb_session* session = nullptr;
    EXPECT_EQ(join(*other, FB_ROLE_ACTIVE, &session), FB_ERROR_CORRUPT);
    EXPECT_STREQ(fb_last_error(nullptr), "the agent sent no shared page");
  }
}

TEST_F(SessionTest, AnAgentWithTooLittleMemoryIsRefusedAndNothingBehindItIsTouched) {
  for (const std::size_t size : {sizeof(abi::SharedPage), sizeof(abi::SharedMemory) - 4096}) {
    const auto other = SmallAgent::start({.size_bytes = size}).value();
    fb_session* session = nullptr;
    EXPECT_EQ(join(*other, FB_ROLE_ACTIVE, &session), FB_ERROR_CORRUPT);
    EXPECT_STREQ(fb_last_error(nullptr), "the agent's shared memory is too small");
  }
}

}  // namespace
}  // namespace firebreak::testing_agent
