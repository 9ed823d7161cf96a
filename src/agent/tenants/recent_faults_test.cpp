// SPDX-License-Identifier: Apache-2.0
#include "agent/tenants/recent_faults.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>

#include "agent/tenants/pair/pair.h"
#include "tests/doubles/os/fake_kernel.h"

namespace firebreak::agent {
namespace {

using Confirms = RecentFaults::Confirms;
using fault::FaultClass;

constexpr pid_t server = 4711;

class RecentFaultsTest : public testing::Test {
 protected:
  static constexpr uid_t alice = 1'000, mallory = 1'001;
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
  faults.note("a", Confirms::Nothing);
  EXPECT_FALSE(faults.is_confirmed("a", FaultClass::Sm));
  faults.note("a", Confirms::All);
  EXPECT_TRUE(faults.is_confirmed("a", FaultClass::Sm));
  EXPECT_FALSE(faults.is_confirmed("b", FaultClass::Sm));
  clock.advance(Milliseconds(1000));
  EXPECT_FALSE(faults.is_confirmed("a", FaultClass::Sm));
}

// UVM hears of no SM exception.
TEST_F(RecentFaultsTest, OneOfMemoryConfirmsThoseOfMemoryAlone) {
  faults.note("a", Confirms::MemoryFaults);
  EXPECT_TRUE(faults.is_confirmed("a", FaultClass::MmuReplayable));
  EXPECT_TRUE(faults.is_confirmed("a", FaultClass::MmuNonReplayable));
  EXPECT_FALSE(faults.is_confirmed("a", FaultClass::Sm));
  EXPECT_FALSE(faults.is_confirmed("a", FaultClass::Unknown));
  clock.advance(Milliseconds(1000));
  EXPECT_FALSE(faults.is_confirmed("a", FaultClass::MmuReplayable));
}

TEST_F(RecentFaultsTest, OneOfMemoryThatIsTakenBackConfirmsNone) {
  faults.note("a", Confirms::MemoryFaults);
  faults.note("b", Confirms::MemoryFaults);
  faults.take_memory_fault_back("a");
  EXPECT_FALSE(faults.is_confirmed("a", FaultClass::MmuReplayable));
  EXPECT_TRUE(faults.is_confirmed("b", FaultClass::MmuReplayable));
  EXPECT_GT(faults.lasts("a"), Nanoseconds(0)) << "a client of it has had one all the same";
  faults.note("a", Confirms::All);
  faults.take_memory_fault_back("a");
  EXPECT_TRUE(faults.is_confirmed("a", FaultClass::MmuReplayable)) << "of that somebody else was sure";
}

TEST_F(RecentFaultsTest, OneLastsAsLongAsAPairSuspects) {
  EXPECT_EQ(faults.lasts("a"), Nanoseconds(0));
  faults.note("a", Confirms::Nothing);
  clock.advance(Milliseconds(1));
  EXPECT_EQ(faults.lasts("a"), Milliseconds(pair::suspicion_ms - 1));
  EXPECT_EQ(faults.lasts("b"), Nanoseconds(0));
}

TEST_F(RecentFaultsTest, WhatWasNoneIsForgotten) {
  faults.note("a", Confirms::All);
  faults.note("b", Confirms::All);
  faults.forget("a");
  EXPECT_FALSE(faults.is_confirmed("a", FaultClass::Sm));
  EXPECT_EQ(faults.lasts("a"), Nanoseconds(0));
  EXPECT_TRUE(faults.is_confirmed("b", FaultClass::Sm));
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

TEST_F(RecentFaultsTest, WhoHasEndedMayBeNamedForAsLongAsADomainIsHeld) {
  EXPECT_EQ(faults.domain_of_ended(7), "");
  faults.note_end(7, "a", alice);
  clock.advance(Milliseconds(60'000));
  EXPECT_EQ(faults.domain_of_ended(7), "a");
  EXPECT_EQ(faults.domain_of_ended(8), "");
  clock.advance(Milliseconds(1));
  EXPECT_EQ(faults.domain_of_ended(7), "");
}

TEST_F(RecentFaultsTest, AnotherProcessOfThatNumberIsNotTheOneThatHasEnded) {
  faults.note_end(server, "a", alice);
  EXPECT_EQ(faults.domain_of_ended(server), "a") << "nobody has waited for it yet";
  started_at("200");
  EXPECT_EQ(faults.domain_of_ended(server), "");
}

TEST_F(RecentFaultsTest, WhoEndsManyProcessesTakesNobodyElsesRoom) {
  faults.note_end(server, "a", alice);
  clock.advance(Milliseconds(1));
  constexpr pid_t first = 10'000, many = 5'000;
  for (pid_t pid = first; pid < first + many; ++pid) {
    faults.note_end(pid, "b", mallory);
    clock.advance(Nanoseconds(1));
  }
  EXPECT_EQ(faults.domain_of_ended(server), "a");
  EXPECT_EQ(faults.domain_of_ended(first + many - 1), "b");
  EXPECT_EQ(faults.domain_of_ended(first + many - 4'095), "b");
  EXPECT_EQ(faults.domain_of_ended(first + many - 4'096), "") << "its own oldest went";
  faults.note_end(8, "c", alice);
  EXPECT_EQ(faults.domain_of_ended(8), "c");
}

}  // namespace
}  // namespace firebreak::agent
