// SPDX-License-Identifier: Apache-2.0
#include "workloads/decode/schedule.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstring>
#include <set>

namespace firebreak::workloads::decode {
namespace {

constexpr Shape shape{.vocabulary = 100, .streams = 2, .page_tokens = 4, .pages = 10};
constexpr Traffic traffic{
    .prompt_tokens_min = 2, .prompt_tokens_max = 5, .answer_tokens_min = 3, .answer_tokens_max = 9};

bool same(const StepPlan& left, const StepPlan& right) {
  return std::memcmp(&left, &right, sizeof left) == 0;
}

TEST(Schedule, GoesOnFromAnyCommittedStateWithTheSamePlans) {
  Schedule whole(shape, traffic, 7);
  for (int step = 1; step <= 60; ++step) {
    Schedule resumed(shape, traffic, 7);
    ASSERT_TRUE(resumed.restore(whole.state_bytes()));
    const StepPlan expected = whole.advance();
    EXPECT_TRUE(same(expected, resumed.advance())) << "step " << step;
  }
}

TEST(Schedule, WhatItSaysToHaveChangedIsAllThatHas) {
  Schedule schedule(shape, traffic, 5);
  State before = schedule.state();
  for (int step = 1; step <= 200; ++step) {
    schedule.advance();
    std::size_t bytes = 0;
    for (const StateRange& range : schedule.changed()) {
      ASSERT_LE(range.offset + range.size_bytes, sizeof before);
      std::memcpy(reinterpret_cast<std::byte*>(&before) + range.offset,
                  schedule.state_bytes().data() + range.offset, range.size_bytes);
      bytes += range.size_bytes;
    }
    ASSERT_EQ(std::memcmp(&before, schedule.state_bytes().data(), sizeof before), 0) << "step " << step;
    EXPECT_LT(bytes, sizeof before);
  }
}

TEST(Schedule, ReadsEveryPromptThenSamplesEveryAnswer) {
  Schedule schedule(shape, traffic, 3);
  std::uint32_t sampled[2] = {};
  std::uint32_t prompted[2] = {};
  std::uint32_t finished = 0;
  std::uint32_t current[2] = {};
  for (int step = 1; step <= 100; ++step) {
    const StepPlan plan = schedule.advance();
    for (std::uint32_t stream = 0; stream < 2; ++stream) {
      const std::uint32_t number = schedule.state().streams[stream].request;
      if (number != current[stream]) {
        const Request request = schedule.request(stream, current[stream]);
        EXPECT_EQ(prompted[stream], request.prompt_tokens);
        EXPECT_EQ(sampled[stream], request.answer_tokens);
        prompted[stream] = sampled[stream] = 0;
        current[stream] = number;
        ++finished;
      }
      prompted[stream] += plan.token[stream] != token_of_last_step ? 1 : 0;
      sampled[stream] += plan.samples[stream];
    }
  }
  EXPECT_GT(finished, 10u);
}

TEST(Schedule, NoPageBelongsToTwoSequences) {
  Schedule schedule(shape, traffic, 11);
  for (int step = 1; step <= 200; ++step) {
    schedule.advance();
    std::set<std::uint16_t> seen;
    for (const StreamState& stream : schedule.state().streams) {
      for (std::uint32_t i = 0; i < stream.page_count; ++i) {
        EXPECT_LT(stream.pages[i], shape.pages);
        EXPECT_TRUE(seen.insert(stream.pages[i]).second) << "step " << step;
      }
    }
  }
}

TEST(Schedule, RefusesTheStateOfOtherOptions) {
  Schedule schedule(shape, traffic, 1);
  schedule.advance();
  Schedule other(shape, traffic, 2);
  const Status restored = other.restore(schedule.state_bytes());
  ASSERT_FALSE(restored);
  EXPECT_EQ(restored.error().code, ErrorCode::Protocol);
}

TEST(Schedule, RefusesStatesThatCannotBe) {
  Schedule schedule(shape, traffic, 1);
  for (int i = 0; i < 3; ++i) schedule.advance();
  const State good = schedule.state();
  const auto refused = [&](State state) { return !schedule.restore(std::as_bytes(std::span(&state, 1))); };
  EXPECT_FALSE(refused(good));
  State state = good;
  state.streams[0].pages[0] = state.streams[1].pages[0];
  EXPECT_TRUE(refused(state));
  state = good;
  state.streams[0].pages[0] = shape.pages;
  EXPECT_TRUE(refused(state));
  state = good;
  state.streams[0].length = 100;
  EXPECT_TRUE(refused(state));
  state = good;
  state.streams[0].page_count = 0xffffffff;
  EXPECT_TRUE(refused(state));
  EXPECT_FALSE(schedule.restore(schedule.state_bytes().first(10)));
}

TEST(Schedule, TheAnswersNameTheirRequests) {
  constexpr Traffic short_traffic{
      .prompt_tokens_min = 2, .prompt_tokens_max = 2, .answer_tokens_min = 2, .answer_tokens_max = 2};
  constexpr Shape one{.vocabulary = 100, .streams = 1, .page_tokens = 4, .pages = 1};
  const std::uint32_t tokens[] = {no_token, 5, 6, no_token, 7, 8};
  EXPECT_EQ(format_answers(Schedule(one, short_traffic, 1), one, tokens),
            "stream 0 request 0 prompt 2: 5 6\nstream 0 request 1 prompt 2: 7 8\n");
}

}  // namespace
}  // namespace firebreak::workloads::decode
