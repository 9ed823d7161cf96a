// SPDX-License-Identifier: Apache-2.0
#include "agent/recent_faults.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>

#include "os/fake_kernel.h"
#include "pair/pair.h"

namespace firebreak::agent {
namespace {

constexpr pid_t server = 4711;

class RecentFaultsTest : public testing::Test {
 protected:
  RecentFaultsTest() { started_at("100"); }

  void started_at(const std::string& start_time) {
    kernel.set_file("/proc/4711/stat",
                    "4711 (mps) S 1 1 1 0 -1 0 0 0 0 0 0 0 0 0 20 0 1 0 " + start_time + " 0 0");
  }
  fault::Fault xid(std::optional<pid_t> pid) const {
    fault::Fault fault;
    fault.source = fault::FaultSource::Xid;
    fault.pid = pid;
    fault.when = clock.now();
    return fault;
  }

  FakeClock clock;
  os::FakeKernel kernel;
  RecentFaults faults{clock, kernel};
};

TEST_F(RecentFaultsTest, OneThatSomebodyIsSureOfConfirmsOthersForASecond) {
  faults.note("a", false);
  EXPECT_FALSE(faults.is_confirmed("a"));
  faults.note("a", true);
  EXPECT_TRUE(faults.is_confirmed("a"));
  EXPECT_FALSE(faults.is_confirmed("b"));
  clock.advance(Milliseconds(1000));
  EXPECT_FALSE(faults.is_confirmed("a"));
}

TEST_F(RecentFaultsTest, OneLastsAsLongAsAPairSuspects) {
  EXPECT_EQ(faults.lasts("a"), Nanoseconds(0));
  faults.note("a", false);
  clock.advance(Milliseconds(1));
  EXPECT_EQ(faults.lasts("a"), Milliseconds(pair::suspicion_ms - 1));
  EXPECT_EQ(faults.lasts("b"), Nanoseconds(0));
}

TEST_F(RecentFaultsTest, WhatWasNoneIsForgotten) {
  faults.note("a", true);
  faults.note("b", true);
  faults.forget("a");
  EXPECT_FALSE(faults.is_confirmed("a"));
  EXPECT_EQ(faults.lasts("a"), Nanoseconds(0));
  EXPECT_TRUE(faults.is_confirmed("b"));
}

TEST_F(RecentFaultsTest, OneThatNamesAServerWaitsUntilThatIsKnown) {
  EXPECT_TRUE(faults.put_off(xid(server)));
  EXPECT_TRUE(faults.take_of_server(server + 1).empty());
  clock.advance(Milliseconds(1000));
  EXPECT_EQ(faults.take_of_server(server).size(), 1u);
  EXPECT_TRUE(faults.take_of_server(server).empty()) << "once";
}

TEST_F(RecentFaultsTest, OneThatWaitedTooLongIsNobodys) {
  EXPECT_TRUE(faults.put_off(xid(server)));
  clock.advance(Milliseconds(1001));
  EXPECT_TRUE(faults.take_of_server(server).empty());
}

TEST_F(RecentFaultsTest, AnotherProcessOfThatNumberIsAnotherServer) {
  EXPECT_TRUE(faults.put_off(xid(server)));
  started_at("200");
  EXPECT_TRUE(faults.take_of_server(server).empty());
}

TEST_F(RecentFaultsTest, WhatNamesNobodyWhoIsThereDoesNotWait) {
  EXPECT_FALSE(faults.put_off(xid(std::nullopt)));
  EXPECT_FALSE(faults.put_off(xid(server + 1)));
  fault::Fault event = xid(server);
  event.source = fault::FaultSource::UvmEvent;
  EXPECT_FALSE(faults.put_off(event));
}

TEST_F(RecentFaultsTest, NoMoreWaitThanTheDriverTellsInASecond) {
  for (int i = 0; i < 64; ++i) ASSERT_TRUE(faults.put_off(xid(server)));
  EXPECT_FALSE(faults.put_off(xid(server)));
  clock.advance(Milliseconds(1001));
  EXPECT_TRUE(faults.put_off(xid(server))) << "the old ones make room";
  EXPECT_EQ(faults.take_of_server(server).size(), 1u);
}

}  // namespace
}  // namespace firebreak::agent
