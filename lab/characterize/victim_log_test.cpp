// SPDX-License-Identifier: Apache-2.0
#include "characterize/victim_log.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace firebreak::characterize {
namespace {

std::vector<std::int64_t> lengths_of(const VictimRecord& record) {
  std::vector<std::int64_t> lengths;
  for (const Gap& gap : record.gaps) lengths.push_back(gap.length_ns());
  return lengths;
}

TEST(VictimLog, KeepsTheLongestGapsTheLongestFirst) {
  VictimLog log;
  std::int64_t now_ns = 1000;
  log.begin(now_ns);
  // 1, 3, 5, …, 39, then 2, 4, …, 40.
  for (std::int64_t length = 1; length < 40; length += 2) log.kernel_done(now_ns += length);
  for (std::int64_t length = 2; length <= 40; length += 2) log.kernel_done(now_ns += length);
  EXPECT_EQ(log.record().kernels, 40U);
  EXPECT_THAT(lengths_of(log.record()),
              testing::ElementsAre(40, 39, 38, 37, 36, 35, 34, 33, 32, 31, 30, 29, 28, 27, 26, 25));
}

TEST(VictimLog, TellsWhenAGapWas) {
  VictimLog log;
  log.begin(100);
  log.kernel_done(130);
  ASSERT_EQ(log.record().gaps.size(), 1U);
  EXPECT_EQ(log.record().gaps[0].from_ns, 100);
  EXPECT_EQ(log.record().gaps[0].to_ns, 130);
}

TEST(VictimLog, EndsTheLastGapWithTheError) {
  VictimLog log;
  log.begin(100);
  log.kernel_done(110);
  log.failed(190, "CUDA_ERROR_ILLEGAL_ADDRESS");
  EXPECT_EQ(log.record().kernels, 1U);
  EXPECT_EQ(log.record().error, "CUDA_ERROR_ILLEGAL_ADDRESS");
  EXPECT_EQ(log.record().error_at_ns, 190);
  EXPECT_THAT(lengths_of(log.record()), testing::ElementsAre(80, 10));
}

TEST(VictimLog, ForgetsWhatWasWhenItBeginsAnew) {
  VictimLog log;
  log.begin(0);
  log.kernel_done(1'000'000);
  log.begin(2'000'000);
  log.kernel_done(2'000'010);
  EXPECT_EQ(log.record().kernels, 1U);
  EXPECT_THAT(lengths_of(log.record()), testing::ElementsAre(10));
}

TEST(VictimRecord, ComesBackFromItsLine) {
  VictimLog log;
  log.begin(5);
  log.kernel_done(15);
  log.failed(35, "CUDA_ERROR_UNKNOWN");
  const std::string line = to_line(log.record());
  EXPECT_EQ(line.find('\n'), std::string::npos);
  const auto record = parse_victim_record(line);
  ASSERT_TRUE(record.has_value()) << to_string(record.error());
  EXPECT_EQ(record->kernels, 1U);
  EXPECT_EQ(record->error, "CUDA_ERROR_UNKNOWN");
  EXPECT_EQ(record->error_at_ns, 35);
  EXPECT_THAT(lengths_of(*record), testing::ElementsAre(20, 10));
  EXPECT_EQ(record->gaps[1].from_ns, 5);
}

TEST(VictimRecord, IsNotReadFromAnythingElse) {
  for (const char* line : {"", "begun", "{}", R"({"kernels":1,"gaps":[[1]],"error":"","error_at_ns":0})"})
    EXPECT_EQ(parse_victim_record(line).error().code, ErrorCode::Protocol) << line;
}

}  // namespace
}  // namespace firebreak::characterize
