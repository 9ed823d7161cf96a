// SPDX-License-Identifier: Apache-2.0
#include "agent/faults/fault/merger.h"

#include <gtest/gtest.h>

#include "tests/doubles/fault/signal_test_support.h"

namespace firebreak::fault {
namespace {

constexpr pid_t rogue = 100;
constexpr pid_t victim = 200;
constexpr pid_t stranger = 300;  // a process in another domain
constexpr pid_t server = 999;
constexpr std::uint64_t address = 0x7000dead0000;

struct MergerTest : testing::Test {
  Merger merger;

  MergerTest() {
    merger.watch(watched(rogue));
    merger.watch(watched(victim));
    merger.watch(watched(stranger, "b"));
  }

  Incident take(const Fault& signal) {
    const Incident* incident = merger.take(signal);
    EXPECT_NE(incident, nullptr) << describe(signal);
    return incident ? *incident : Incident{};
  }
};

TEST_F(MergerTest, AUvmEventAndTheLaterXidOfItsPageAreOne) {
  const Incident first = take(uvm_event(1, rogue, address));
  EXPECT_EQ(first.id, 1u);
  EXPECT_EQ(first.fault_class, FaultClass::MmuReplayable);
  const Incident second = take(xid_31(110, victim, address + 0x40));
  EXPECT_EQ(second.id, 1u);
  EXPECT_EQ(second.signals.size(), 2u);
  EXPECT_EQ(second.culprit.pid, rogue);
  EXPECT_EQ(second.culprit.confidence, Confidence::Certain);
  EXPECT_EQ(second.culprit.tenant, "tenant-100");
}

TEST_F(MergerTest, AnSmExceptionWithItsChannelResetsIsOne) {
  EXPECT_EQ(take(xid(7, 13)).domain, "");
  take(xid(7, 13));
  const Incident incident = take(xid(8, 43, server, "a"));
  EXPECT_EQ(incident.id, 1u);
  EXPECT_EQ(incident.domain, "a");
  EXPECT_EQ(incident.fault_class, FaultClass::Sm);
  EXPECT_EQ(incident.xids, (std::vector{13, 43}));
  EXPECT_EQ(take(xid(9, 45, server, "a")).id, 1u);
  EXPECT_EQ(take(xid(9, 45, server, "a")).xids, (std::vector{13, 43, 45}));
}

TEST_F(MergerTest, TheWordsThatSayMostNameTheIncident) {
  Fault echo = nvml_xid(7, 13);
  echo.kind = "NVML Xid 13";
  EXPECT_EQ(take(echo).kind, "NVML Xid 13");
  EXPECT_EQ(take(xid(8, 43, server, "a")).kind, "Xid 43");
  EXPECT_EQ(take(xid(9, 13)).kind, "Xid 13");
  EXPECT_EQ(take(xid(10, 43, server, "a")).kind, "Xid 13");
  const Fault dump = signal_of(FaultSource::CoreDump, FaultClass::Sm, 11, "a", rogue, "Illegal instruction");
  EXPECT_EQ(take(dump).kind, "Illegal instruction");
}

TEST_F(MergerTest, SmExceptionsOfTwoDomainsAreTwo) {
  EXPECT_EQ(take(xid(7, 13)).id, 1u);
  EXPECT_EQ(take(xid(7, 13)).id, 1u);
  EXPECT_EQ(take(xid(8, 43, server, "a")).id, 1u);
  EXPECT_EQ(take(xid(8, 43, server + 1, "b")).id, 2u);
}

TEST_F(MergerTest, SmExceptionsOfADomainAndOfTheServerThatItHasAfterItsFallAreTwo) {
  take(xid(7, 13));
  EXPECT_EQ(take(xid(8, 43, server, "a")).id, 1u);
  EXPECT_EQ(take(xid(9, 43, server, "a")).id, 1u);
  EXPECT_EQ(take(xid(700, 43, server + 1, "a")).id, 2u);
  EXPECT_EQ(take(xid(701, 43, server + 1, "a")).id, 2u);
}

TEST_F(MergerTest, SmExceptionsOfTwoProcessesWithoutMpsAreTwoWithACulpritEach) {
  for (const pid_t pid : {rogue, victim}) merger.watch(watched(pid, ""));
  EXPECT_EQ(take(xid(8, 43, rogue)).culprit.pid, rogue);
  const Incident second = take(xid(9, 43, victim));
  EXPECT_EQ(second.id, 2u);
  EXPECT_EQ(second.culprit.pid, victim);
}

TEST_F(MergerTest, EndsOfCoClientsAfterAFaultArePartOfIt) {
  take(xid(7, 13));
  take(xid(8, 43, server, "a"));
  EXPECT_EQ(take(killed(60, rogue)).id, 1u);
  EXPECT_EQ(take(ended(150, victim)).id, 1u);
  EXPECT_EQ(take(killed(151, stranger, "b")).id, 2u);
}

// A domain may serve again before its fault is closed: whoever comes then, and ends, was not reached by it.
TEST_F(MergerTest, TheEndOfAProcessThatCameAfterAFaultIsNotPartOfIt) {
  take(xid(7, 13));
  take(xid(8, 43, server, "a"));
  WatchedProcess newcomer = watched(400);
  newcomer.since = at_ms(9);
  merger.watch(newcomer);
  EXPECT_EQ(merger.take(ended(60, newcomer.pid)), nullptr);
  WatchedProcess in_time = watched(401);
  in_time.since = at_ms(8);
  merger.watch(in_time);
  EXPECT_EQ(take(ended(70, in_time.pid)).id, 1u);
  EXPECT_EQ(take(ended(150, victim)).id, 1u);
}

// MPS names it as a client while its fault is told of.
TEST_F(MergerTest, WhereAProcessIsMayComeToBeKnownLater) {
  const pid_t late = 400;
  WatchedProcess perhaps = watched(late, "");
  perhaps.may_be_client = true;
  merger.watch(perhaps);
  take(xid(7, 13));
  take(xid(8, 43, server, "a"));
  EXPECT_EQ(merger.place(late, "a", 0).size(), 1u) << "who was told of it is told again";
  EXPECT_EQ(merger.processes().at(late).domain, "a");
  EXPECT_TRUE(merger.place(401, "a", 0).empty()) << "nobody watches it";
  EXPECT_FALSE(merger.processes().contains(401));
}

// A dump is its process's own word: who ends after it ends of something else.
TEST_F(MergerTest, ACoreDumpTakesNobodyElseAlong) {
  take(signal_of(FaultSource::CoreDump, FaultClass::Sm, 11, "a", rogue, "Illegal instruction"));
  EXPECT_TRUE(take(killed(20'000, victim)).signals.front().conclusive);
}

TEST_F(MergerTest, ExceptionsOfTwoAreTwoAlsoWhereOneFellWithTheOthersDomain) {
  take(signal_of(FaultSource::CoreDump, FaultClass::Sm, 11, "a", rogue, "Illegal instruction"));
  EXPECT_EQ(take(killed(12, victim)).id, 1u);
  const Fault dump = signal_of(FaultSource::CoreDump, FaultClass::Sm, 13, "a", victim, "Misaligned address");
  const Incident second = take(dump);
  EXPECT_EQ(second.id, 2u);
  EXPECT_EQ(second.culprit.pid, victim);
  EXPECT_EQ(second.culprit.confidence, Confidence::Certain);
  EXPECT_EQ(take(signal_of(FaultSource::CoreDump, FaultClass::Sm, 14, "a", rogue, "once more")).culprit.pid,
            rogue);
}

TEST_F(MergerTest, AKilledClientAndTheXidItLeavesBehindAreOneTermination) {
  const Incident death = take(killed(0, rogue));
  EXPECT_EQ(death.fault_class, FaultClass::Termination);
  EXPECT_EQ(death.culprit.pid, rogue);
  const Incident incident = take(xid_31(110, server, 0x1000, "a", "GRAPHICS GPC0 GPCCLIENT_GCC"));
  EXPECT_EQ(incident.id, death.id);
  EXPECT_EQ(incident.fault_class, FaultClass::Termination);
  EXPECT_EQ(incident.kind, "killed by signal 9");
  EXPECT_EQ(incident.culprit.pid, rogue);
  EXPECT_EQ(take(ended(160, victim)).culprit.pid, rogue);
}

TEST_F(MergerTest, AnEndAloneOfWhichNoMoreIsKnownIsNoIncident) {
  EXPECT_EQ(merger.take(ended(0, rogue)), nullptr);
  EXPECT_TRUE(merger.finish().empty());
}

TEST_F(MergerTest, AnEndOfWhichNoMoreIsKnownIsTheCulpritOnceAnXidFollows) {
  EXPECT_EQ(merger.take(ended(0, rogue)), nullptr);
  const Incident incident = take(xid_31(110, server, 0x1000, "a", "GRAPHICS GPC1 GPCCLIENT_GCC"));
  EXPECT_EQ(incident.id, 1u);
  EXPECT_EQ(incident.culprit.pid, rogue);
  EXPECT_EQ(incident.culprit.confidence, Confidence::Certain);
}

TEST_F(MergerTest, WhomTheServerLostAndItsEndAreOneIncident) {
  EXPECT_EQ(merger.take(lost(0, rogue)), nullptr);
  take(xid_31(110, victim, 0x1000, "a", "GRAPHICS GPC1 GPCCLIENT_GCC"));
  const Incident incident = take(killed(160, rogue));
  EXPECT_EQ(incident.id, 1u);
  EXPECT_EQ(incident.signals.size(), 3u);
  EXPECT_EQ(incident.fault_class, FaultClass::Termination);
}

TEST_F(MergerTest, WhomAFaultReachedMayEndLateWithoutBeingNews) {
  take(uvm_event(0, rogue, 0x1000));
  take(xid_31(110, victim, 0x1000));
  EXPECT_EQ(merger.advance(at_ms(2000)).size(), 1u);
  EXPECT_EQ(merger.take(killed(2500, victim)), nullptr);
  EXPECT_TRUE(merger.finish().empty());
}

TEST_F(MergerTest, WhomAFaultDidNotReachIsNewsWhenItEnds) {
  take(uvm_event(0, rogue, 0x1000));
  EXPECT_EQ(merger.advance(at_ms(2000)).size(), 1u);
  EXPECT_EQ(take(killed(2500, stranger, "b")).culprit.pid, stranger);
}

TEST_F(MergerTest, ABrokenGpuReachesEverybody) {
  take(xid(0, 79));
  EXPECT_EQ(merger.advance(at_ms(2000)).size(), 1u);
  EXPECT_EQ(merger.take(killed(2500, stranger, "b")), nullptr);
}

TEST_F(MergerTest, WhoLeavesInOrderIsNoIncident) {
  EXPECT_EQ(merger.take(lost(0, rogue)), nullptr);
  EXPECT_TRUE(merger.finish().empty());
}

TEST_F(MergerTest, OfTwoEndsBeforeAnXidNobodyIsPicked) {
  EXPECT_EQ(merger.take(ended(0, rogue)), nullptr);
  EXPECT_EQ(merger.take(ended(5, victim)), nullptr);
  const Incident incident = take(xid_31(110, server, 0x1000));
  EXPECT_EQ(incident.signals.size(), 3u);
  EXPECT_EQ(incident.culprit.confidence, Confidence::Unknown);
  EXPECT_FALSE(incident.culprit.pid);
  EXPECT_EQ(merger.finish().size(), 1u);
}

TEST_F(MergerTest, MemoryFaultsOfTwoProcessesAreTwoAndEachXidFindsItsOwn) {
  take(uvm_event(1, rogue, address));
  take(uvm_event(2, stranger, address * 2, "b"));
  EXPECT_EQ(take(xid_31(110, stranger, address * 2, "b")).id, 2u);
  EXPECT_EQ(take(xid_31(111, rogue, address)).id, 1u);
}

TEST_F(MergerTest, FurtherEventsOfOneProcessAreTheSameFault) {
  take(uvm_event(1, rogue, address));
  EXPECT_EQ(take(uvm_event(1.2, rogue, address + 0x100000)).id, 1u);
}

TEST_F(MergerTest, NvmlsEchoJoinsTheXidOfItsCode) {
  take(uvm_event(1, rogue, address));
  take(xid(7, 13));
  take(xid(8, 43, server, "b"));
  EXPECT_EQ(take(nvml_xid(10, 43)).id, 2u);
  take(xid_31(110, rogue, address));
  EXPECT_EQ(take(nvml_xid(130, 31)).id, 1u);
}

// Seen on a busy machine with a client that was killed in mid-kernel.
TEST_F(MergerTest, NvmlsEchoMayComeBeforeTheXidThatFollowsADeparture) {
  EXPECT_EQ(take(killed(0, rogue)).id, 1u);
  const Fault word = signal_of(FaultSource::MpsLog, FaultClass::Unknown, 28, "a", std::nullopt, "handling");
  EXPECT_EQ(take(word).id, 1u);
  EXPECT_EQ(take(nvml_xid(32.4, 31)).id, 1u);
  EXPECT_EQ(take(xid_31(32.7, victim, 0)).id, 1u);
  EXPECT_EQ(take(xid_31(33, stranger, address, "b")).id, 2u) << "another domain's";
}

TEST_F(MergerTest, AfterTheWindowItIsAnotherIncident) {
  take(xid(0, 43, server, "a"));
  EXPECT_EQ(take(xid(999, 43, server, "a")).id, 1u);
  EXPECT_EQ(take(xid(2000, 43, server, "a")).id, 2u);
}

TEST_F(MergerTest, WhileItsDomainIsHeldAnIncidentTakesInWhatComes) {
  take(xid(0, 43, server, "a"));
  merger.set_going_on("a", true, at_ms(10));
  EXPECT_FALSE(merger.next_closing()) << "nobody knows when";
  EXPECT_TRUE(merger.advance(at_ms(50'000)).empty());
  EXPECT_EQ(take(xid(60'000, 43, server, "b")).id, 2u) << "another domain's";
  EXPECT_EQ(take(xid(60'000, 43, server, "a")).id, 1u);
  merger.set_going_on("a", false, at_ms(70'000));
  EXPECT_EQ(take(xid(70'900, 43, server, "a")).id, 1u) << "the window begins with the fall";
  ASSERT_TRUE(merger.next_closing());
  EXPECT_EQ(merger.advance(at_ms(90'000)).size(), 2u);
  EXPECT_EQ(take(xid(90'000, 43, server, "a")).id, 3u);
}

TEST_F(MergerTest, TheEndClosesWhatIsHeldToo) {
  take(xid(0, 43, server, "a"));
  merger.set_going_on("a", true, at_ms(10));
  EXPECT_EQ(merger.finish().size(), 1u);
}

TEST_F(MergerTest, AdvanceClosesWhatIsDueAndSaysWhenToComeBack) {
  take(xid(0, 43, server, "a"));
  take(xid(500, 43, server, "b"));
  ASSERT_TRUE(merger.next_closing());
  const std::vector<Incident> closed = merger.advance(*merger.next_closing());
  ASSERT_EQ(closed.size(), 1u);
  EXPECT_EQ(closed[0].domain, "a");
  EXPECT_TRUE(closed[0].closed);
  EXPECT_EQ(merger.finish().size(), 1u);
  EXPECT_FALSE(merger.next_closing());
}

TEST_F(MergerTest, AnotherGpuIsAnotherIncident) {
  Fault one = xid(0, 43, server, "a");
  one.gpu.number = 0;
  take(one);
  Fault other = xid(1, 43, server, "a");
  other.gpu.number = 1;
  EXPECT_EQ(take(other).id, 2u);
}

TEST_F(MergerTest, WhatFollowsABrokenGpuIsPartOfItAndHasNoCulprit) {
  take(xid(0, 48));
  EXPECT_EQ(take(xid(1, 95)).id, 1u);
  const Incident incident = take(killed(50, stranger, "b"));
  EXPECT_EQ(incident.id, 1u);
  EXPECT_EQ(incident.fault_class, FaultClass::Device);
  EXPECT_EQ(incident.culprit.confidence, Confidence::Unknown);
}

TEST_F(MergerTest, WhatSaysThatNothingIsWrongIsNoIncidentAndTakesInNothing) {
  for (const Fault& word : {xid(0, 63), xid_saying(0, 145, "RLW_RXPIPE Nonfatal XC0 i0 Link 13 (0x0)"),
                            xid_saying(0, 154,
                                       "GPU recovery action changed from 0x1 (GPU Reset Required) to 0x0 "
                                       "(None)"),
                            nvml_xid(0, 154), nvml_xid(0, 149)}) {
    EXPECT_EQ(merger.take(word), nullptr) << describe(word);
  }
  EXPECT_EQ(take(killed(50, stranger, "b")).culprit.pid, stranger);
}

TEST_F(MergerTest, WhatIsSaidOfABrokenGpuIsPartOfIt) {
  take(xid(0, 48));
  EXPECT_EQ(take(xid(5, 63)).id, 1u);
  EXPECT_EQ(take(nvml_xid(6, 154)).id, 1u);
}

TEST_F(MergerTest, ChannelsThatAreClearedAwayAfterAFaultOfTheGpuArePartOfIt) {
  take(xid_saying(0, 149, "NETIR Fatal XC0 i0 Link 01 (0x0)"));
  EXPECT_EQ(take(xid_saying(1, 45, "pid=100, name=rogue, Ch 00000001 caused by previous Xid 149")).id, 1u);
  merger.finish();
  const Incident alone =
      take(xid_saying(5000, 45, "pid=100, name=x, Ch 00000001 caused by previous Xid 145"));
  EXPECT_EQ(alone.fault_class, FaultClass::Device) << "nobody left";
  EXPECT_FALSE(alone.culprit.pid);
}

/// The next tenant's crash is told, whatever was said before of somebody else.
struct MarkTest : MergerTest {
  MarkTest() {
    for (WatchedProcess process : {watched(rogue), watched(victim), watched(stranger, "b")}) {
      process.gpu = 0;
      merger.watch(process);
    }
  }
  void expect_news_after(const Fault& word) {
    merger.take(word);
    merger.advance(at_ms(2000));
    const Incident* crash = merger.take(killed(2500, victim));
    ASSERT_NE(crash, nullptr) << describe(word);
    EXPECT_EQ(crash->culprit.pid, victim) << describe(word);
  }
};

TEST_F(MarkTest, AnotherGpusFaultMarksNobody) {
  Fault other = xid(0, 79);
  other.gpu = {.number = 1, .pci = "0000:3b:00"};
  expect_news_after(other);
}

TEST_F(MarkTest, AFaultOfAGpuThatIsNotHereMarksNobody) {
  Fault other = xid(0, 79);
  other.gpu = {.pci = "0000:99:00", .is_here = false};
  expect_news_after(other);
}

TEST_F(MarkTest, AContainedErrorMarksWhomItNames) {
  expect_news_after(xid(0, 94));
  Fault named = xid(10'000, 94, rogue);
  named.gpu.number = 0;
  take(named);
  merger.advance(at_ms(12'000));
  EXPECT_EQ(merger.take(killed(12'500, rogue)), nullptr);
}

TEST_F(MarkTest, ANonfatalErrorOfALinkMarksNobody) {
  expect_news_after(xid_saying(0, 145, "RLW_RXPIPE Nonfatal XC0 i0 Link 13 (0x0)"));
}

TEST_F(MarkTest, TheServersWordAloneMarksNobody) {
  expect_news_after(signal_of(FaultSource::MpsLog, FaultClass::Unknown, 0, "a", std::nullopt, "handling"));
}

TEST_F(MarkTest, ANeighboursCopyEngineMarksItsOwnClientAlone) {
  expect_news_after(xid_31(0, rogue, address, "a", "CE2 HUBCLIENT_CE0"));
  EXPECT_EQ(merger.take(killed(2600, rogue)), nullptr);
}

TEST_F(MarkTest, AFaultThatNamesANeighbourOfAnotherDomainMarksTheDomainAlone) {
  expect_news_after(xid_31(0, victim, address, "b"));
}

TEST_F(MarkTest, AMarkEnds) {
  take(xid(0, 43, server, "a"));
  merger.advance(at_ms(2000));
  EXPECT_EQ(merger.take(killed(29'000, rogue)), nullptr) << "it slept";
  EXPECT_NE(merger.take(killed(31'000, victim)), nullptr) << "it has begun anew by then";
}

TEST_F(MarkTest, AMarkOfABrokenGpuEnds) {
  take(xid(0, 79));
  merger.advance(at_ms(2000));
  EXPECT_EQ(merger.take(killed(29'000, stranger, "b")), nullptr);
  EXPECT_NE(merger.take(killed(31'000, victim)), nullptr);
}

TEST_F(MergerTest, AGpuThatIsNotHereIsItsOwnIncident) {
  Fault other = xid(0, 79);
  other.gpu = {.pci = "0000:99:00", .is_here = false};
  EXPECT_EQ(take(other).gpu.pci, "0000:99:00");
  EXPECT_FALSE(take(other).gpu.number);
  EXPECT_EQ(take(killed(1, victim)).id, 2u);
  EXPECT_EQ(take(other).id, 1u) << "and again of that GPU";
}

TEST_F(MergerTest, SignalsStandInTheOrderOfTheirTimes) {
  take(xid_31(110, rogue, address));
  const Incident incident = take(uvm_event(1, rogue, address));
  ASSERT_EQ(incident.signals.size(), 2u);
  EXPECT_EQ(incident.signals[0].source, FaultSource::UvmEvent);
  EXPECT_EQ(incident.first_seen(), at_ms(1));
}

TEST_F(MergerTest, AnOverflowOfTheFaultBufferIsNoFaultAndNamesNobody) {
  Fault overflow = uvm_event(1, rogue, 0);
  overflow.conclusive = false;
  overflow.fault_class = FaultClass::Unknown;
  overflow.address.reset();
  EXPECT_EQ(merger.take(overflow), nullptr);
  take(uvm_event(2, victim, address));
  overflow.when = at_ms(3);
  EXPECT_EQ(take(overflow).culprit.pid, victim);
}

}  // namespace
}  // namespace firebreak::fault
