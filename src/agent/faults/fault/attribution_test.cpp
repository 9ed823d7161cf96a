// SPDX-License-Identifier: Apache-2.0
#include "agent/faults/fault/attribution.h"

#include <gmock/gmock.h>

#include "agent/faults/fault/merger.h"
#include "tests/doubles/fault/signal_test_support.h"

namespace firebreak::fault {
namespace {

using testing::Contains;
using testing::HasSubstr;

constexpr pid_t rogue = 100;
constexpr pid_t victim = 200;
constexpr pid_t server = 999;
constexpr std::uint64_t address = 0x7000dead0000;
constexpr const char* fetch_place = "GRAPHICS GPC0 GPCCLIENT_GCC";

/// The culprit after `signals`, with two watched clients in domain a.
Culprit judge(const std::vector<Fault>& signals, bool uvm_heard = true) {
  Merger merger;
  merger.watch(watched(rogue, "a", uvm_heard));
  merger.watch(watched(victim, "a", uvm_heard));
  for (const Fault& signal : signals) merger.take(signal);
  const auto incidents = merger.finish();
  EXPECT_EQ(incidents.size(), 1u);
  return incidents.empty() ? Culprit{} : incidents.front().culprit;
}

void expect(const Culprit& culprit, Confidence confidence, std::optional<pid_t> pid) {
  EXPECT_EQ(culprit.confidence, confidence) << testing::PrintToString(culprit.evidence);
  EXPECT_EQ(culprit.pid, pid) << testing::PrintToString(culprit.evidence);
  EXPECT_FALSE(culprit.evidence.empty());
}

TEST(Attribution, UvmIsRightEvenAgainstTheXid) {
  expect(judge({uvm_event(1, rogue, address), xid_31(110, victim, address)}), Confidence::Certain, rogue);
}

TEST(Attribution, AnXidOfACopyEngineOrPbdmaNamesItsClient) {
  expect(judge({xid_31(40, rogue, address, "a", "CE2 HUBCLIENT_CE0")}), Confidence::Certain, rogue);
  expect(judge({xid_31(40, rogue, address, "a", "GR0_PBDMA1 HUBCLIENT_ESC")}), Confidence::Certain, rogue);
}

TEST(Attribution, AProcessThatNobodyWatchesIsNotNamed) {
  expect(judge({xid_31(40, server, address, "a", "CE2 HUBCLIENT_CE0")}), Confidence::Unknown, {});
}

TEST(Attribution, AnXidOfTheGraphicsEngineProvesNothingUnderMps) {
  expect(judge({xid_31(110, rogue, address)}, false), Confidence::Unknown, {});
}

TEST(Attribution, AnXidOfTheGraphicsEngineIsProbableWithoutMps) {
  Merger merger;
  merger.watch(watched(rogue, "", false));
  merger.watch(watched(victim, "", false));
  merger.take(xid_31(110, rogue, address, ""));
  expect(merger.finish().front().culprit, Confidence::Probable, rogue);
}

/// MPS has not said where it is.
TEST(Attribution, WhoMayBeAClientIsJudgedAsOne) {
  Merger merger;
  WatchedProcess perhaps = watched(rogue, "", false);
  perhaps.may_be_client = true;
  merger.watch(perhaps);
  merger.take(xid_31(110, rogue, address, ""));
  merger.take(xid(5'000, 13));
  merger.take(xid(5'001, 43, rogue, ""));
  for (const Incident& incident : merger.finish()) expect(incident.culprit, Confidence::Unknown, {});
}

TEST(Attribution, AFetchFaultsXidMayNameAnInnocent) {
  expect(judge({xid_31(110, victim, address, "a", fetch_place)}, false), Confidence::Unknown, {});
}

TEST(Attribution, WhoseUvmQueueIsSilentDidNotFault) {
  const Culprit culprit = judge({xid_31(110, victim, address)});
  expect(culprit, Confidence::Unknown, {});
  EXPECT_THAT(culprit.evidence, Contains(HasSubstr("UVM told of no fault")));
}

TEST(Attribution, WhoDiedBeforeTheXidIsTheCulprit) {
  expect(judge({killed(0, rogue), xid_31(110, server, address)}, false), Confidence::Certain, rogue);
  expect(judge({killed(0, rogue), xid_31(110, victim, address, "a", fetch_place)}, false),
         Confidence::Certain, rogue);
}

TEST(Attribution, ADeathBesideANamedSurvivorProvesNothing) {
  expect(judge({killed(0, rogue), xid_31(110, victim, address)}, false), Confidence::Unknown, {});
}

TEST(Attribution, WhomTheServerLostBeforeTheXidIsTheCulprit) {
  const Fault xid = xid_31(110, victim, address, "a", fetch_place);
  expect(judge({lost(0, rogue), xid, killed(160, rogue), lost(300, victim)}), Confidence::Certain, rogue);
  expect(judge({killed(0, rogue), lost(1, rogue), xid}), Confidence::Certain, rogue);
}

TEST(Attribution, WhomTheServerLostMayHaveLeftInOrder) {
  expect(judge({lost(0, rogue), xid_31(110, victim, address, "a", fetch_place)}, false), Confidence::Unknown,
         {});
  expect(judge({lost(0, rogue), xid_31(110, server, address)}), Confidence::Unknown, {});
}

TEST(Attribution, WhoLeftBeforeSomebodyElsesSmFaultIsNotBlamed) {
  const Fault log =
      signal_of(FaultSource::MpsLog, FaultClass::Unknown, 20, "a", {}, "handling a fatal error");
  const Culprit culprit = judge({lost(0, rogue), log, xid(21, 13), xid(22, 43, server, "a")});
  expect(culprit, Confidence::Unknown, {});
}

TEST(Attribution, TheServersOwnWordBetweenADepartureAndItsXidChangesNothing) {
  const Fault log =
      signal_of(FaultSource::MpsLog, FaultClass::Unknown, 109, "a", {}, "handling a fatal error");
  expect(judge({lost(0, rogue), log, xid_31(110, victim, address, "a", fetch_place)}), Confidence::Certain,
         rogue);
}

TEST(Attribution, WhoWasHeardWhenItBeganIsClearedAlsoOnceItsQueueIsGone) {
  Merger merger;
  merger.watch(watched(rogue));
  merger.watch(watched(victim));
  merger.take(lost(0, rogue));
  merger.take(xid_31(110, victim, address, "a", fetch_place));
  merger.set_uvm_heard(victim, false, at_ms(200));
  merger.take(killed(230, victim));
  expect(merger.finish().front().culprit, Confidence::Certain, rogue);
}

TEST(Attribution, WhoseEventsWereLostIsNotCleared) {
  Merger merger;
  merger.watch(watched(rogue));
  merger.watch(watched(victim));
  merger.take(lost(0, rogue));
  merger.take(xid_31(110, victim, address, "a", fetch_place));
  merger.set_uvm_missed(victim, at_ms(111));
  expect(merger.finish().front().culprit, Confidence::Unknown, {});
}

TEST(Attribution, WhoWasNotHeardAnyMoreWhenItBeganIsNotCleared) {
  Merger merger;
  merger.watch(watched(rogue));
  merger.watch(watched(victim));
  merger.set_uvm_heard(victim, false, at_ms(-50));
  merger.take(lost(0, rogue));
  merger.take(xid_31(110, victim, address, "a", fetch_place));
  expect(merger.finish().front().culprit, Confidence::Unknown, {});
}

TEST(Attribution, OfTwoWhomTheServerLostNobodyIsNamed) {
  expect(judge({lost(0, rogue), lost(1, victim), xid_31(110, server, address, "a", fetch_place)}),
         Confidence::Unknown, {});
}

TEST(Attribution, ADeathAfterTheFaultIsNoCause) {
  expect(judge({xid_31(110, server, address), killed(120, victim)}), Confidence::Unknown, {});
}

TEST(Attribution, OfAnSmFaultWithTwoClientsNobodyIsNamed) {
  const Culprit culprit = judge({xid(7, 13), xid(8, 43, server, "a")});
  expect(culprit, Confidence::Unknown, {});
}

/// A domain whose clients MPS can be asked for, with one that is watched.
struct AskedDomain {
  Merger merger{{.lists_clients = true}};
  AskedDomain() {
    merger.watch(watched(victim));
    merger.watch(watched(300, "b"));
  }
  Culprit culprit() { return merger.finish().front().culprit; }
};

constexpr pid_t stranger = 400;

TEST(Attribution, TheOnlyClientOfTheDomainIsProbableOnceMpsHasSaidSo) {
  AskedDomain domain;
  domain.merger.note_clients("a", at_ms(1), {victim}, at_ms(2));
  domain.merger.take(xid(7, 13));
  const Incident* before = domain.merger.take(xid(8, 43, server, "a"));
  expect(before->culprit, Confidence::Unknown, {});
  EXPECT_THAT(before->culprit.evidence, Contains(HasSubstr("who else is a client of domain a is not known")));
  EXPECT_THAT(domain.merger.unlisted_domains(), testing::ElementsAre("a"));
  const auto judged = domain.merger.note_clients("a", at_ms(8), {victim}, at_ms(9));
  ASSERT_EQ(judged.size(), 1u);
  expect(judged[0].culprit, Confidence::Probable, victim);
  EXPECT_TRUE(domain.merger.unlisted_domains().empty());
}

TEST(Attribution, BesideAClientThatNobodyWatchesNobodyIsTheOnlyOne) {
  AskedDomain domain;
  domain.merger.take(xid(7, 13));
  domain.merger.take(xid(8, 43, server, "a"));
  domain.merger.note_clients("a", at_ms(9), {victim, stranger}, at_ms(10));
  const Culprit culprit = domain.culprit();
  expect(culprit, Confidence::Unknown, {});
  EXPECT_THAT(culprit.evidence, Contains(HasSubstr("process 400, a client of domain a, was not watched")));
}

TEST(Attribution, AClientThatHasJustLeftCountsToo) {
  for (const bool is_in_a_list : {true, false}) {
    AskedDomain domain;
    if (is_in_a_list) domain.merger.note_clients("a", at_ms(-3000), {victim, stranger}, at_ms(-2999));
    if (!is_in_a_list) domain.merger.take(lost(6, stranger));
    domain.merger.take(xid(7, 13));
    domain.merger.take(xid(8, 43, server, "a"));
    domain.merger.note_clients("a", at_ms(9), {victim}, at_ms(10));
    expect(domain.culprit(), Confidence::Unknown, {});
  }
}

TEST(Attribution, OneOfOursDoesNotUntilItsNumberIsAnothers) {
  for (const bool is_another : {false, true}) {
    AskedDomain domain;
    domain.merger.note_own_client(stranger);
    if (is_another) domain.merger.watch(watched(stranger));
    domain.merger.take(xid(7, 13));
    domain.merger.take(xid(8, 43, server, "a"));
    domain.merger.take(lost(9, stranger));
    domain.merger.note_clients("a", at_ms(9), {victim}, at_ms(10));
    const Culprit culprit = domain.culprit();
    if (is_another)
      expect(culprit, Confidence::Unknown, {});
    else
      expect(culprit, Confidence::Probable, victim);
    EXPECT_THAT(culprit.evidence, testing::Not(Contains(HasSubstr("was not watched"))));
  }
}

TEST(Attribution, AClientThatHadLeftLongBeforeDoesNot) {
  AskedDomain domain;
  domain.merger.note_clients("a", at_ms(-5000), {victim, stranger}, at_ms(-4999));
  domain.merger.note_clients("a", at_ms(-3000), {victim}, at_ms(-2999));
  domain.merger.take(xid(7, 43, server, "a"));
  domain.merger.note_clients("a", at_ms(9), {victim}, at_ms(10));
  expect(domain.culprit(), Confidence::Probable, victim);
}

TEST(Attribution, AWatchedClientThatEndedJustBeforeAnSmFaultMayHaveCausedIt) {
  AskedDomain domain;
  domain.merger.watch(watched(rogue));
  domain.merger.set_ended(rogue, at_ms(3));
  domain.merger.take(xid(7, 43, server, "a"));
  domain.merger.note_clients("a", at_ms(8), {victim}, at_ms(9));
  expect(domain.culprit(), Confidence::Unknown, {});
}

TEST(Attribution, WhereMpsCannotBeAskedNobodyIsTheOnlyClient) {
  Merger merger;
  merger.watch(watched(rogue));
  merger.watch(watched(victim, "b"));
  merger.take(xid(7, 13));
  merger.take(xid(8, 43, server, "a"));
  expect(merger.finish().front().culprit, Confidence::Unknown, {});
}

TEST(Attribution, WhoLeftInOrderBesideAStrangerIsNotBlamedForItsDeath) {
  for (const bool is_listed : {true, false}) {
    AskedDomain domain;
    domain.merger.take(lost(0, victim));
    domain.merger.take(xid_31(110, server, address, "a", fetch_place));
    if (is_listed) domain.merger.note_clients("a", at_ms(111), {stranger}, at_ms(112));
    expect(domain.culprit(), Confidence::Unknown, {});
  }
  AskedDomain domain;
  domain.merger.take(lost(0, victim));
  domain.merger.take(xid_31(110, server, address, "a", fetch_place));
  domain.merger.note_clients("a", at_ms(111), {}, at_ms(112));
  expect(domain.culprit(), Confidence::Certain, victim);
}

// The graphics engine's Xid picks anybody under MPS.
TEST(Attribution, AFetchFaultsXidThatNamesWhoHasLeftProvesNothing) {
  AskedDomain domain;
  domain.merger.take(lost(0, victim));
  domain.merger.take(xid_31(110, victim, address, "a", fetch_place));
  domain.merger.note_clients("a", at_ms(111), {stranger}, at_ms(112));
  expect(domain.culprit(), Confidence::Unknown, {});
}

TEST(Attribution, UnderMpsAnXid43ThatNamesAClientProvesNothing) {
  expect(judge({xid(7, 13), xid(8, 43, victim, "a")}), Confidence::Unknown, {});
}

TEST(Attribution, ACoreDumpNamesTheCulpritOfAnSmFault) {
  const Fault dump =
      signal_of(FaultSource::CoreDump, FaultClass::Sm, 9, "a", victim, "Warp Misaligned Address, kernel k");
  expect(judge({xid(7, 13), xid(8, 43, server, "a"), dump}), Confidence::Certain, victim);
}

TEST(Attribution, WithoutMpsTheChannelsOwnerIsNamed) {
  Merger merger;
  merger.watch(watched(rogue, ""));
  merger.watch(watched(victim, ""));
  merger.take(xid(7, 13));
  merger.take(xid(8, 43, rogue, ""));
  expect(merger.finish().front().culprit, Confidence::Certain, rogue);
}

TEST(Attribution, WhoseProgressStoppedFirstIsProbableWhereItIsAlone) {
  const auto stop = [](double ms, pid_t pid) {
    return signal_of(FaultSource::Progress, FaultClass::Unknown, ms, "a", pid, "no progress for 100 ms");
  };
  // Chance decides which of several clients is seen first.
  expect(judge({stop(1, rogue), xid(7, 13), xid(8, 43, server, "a")}), Confidence::Unknown, {});
  expect(judge({stop(1, rogue), stop(2, victim), xid(8, 43, server, "a")}), Confidence::Unknown, {});
  expect(judge({xid(8, 43, server, "a"), stop(9, rogue)}), Confidence::Unknown, {});
  AskedDomain domain;
  domain.merger.take(stop(1, victim));
  domain.merger.note_clients("a", at_ms(2), {victim}, at_ms(3));
  expect(domain.culprit(), Confidence::Probable, victim);
}

TEST(Attribution, TheMpsLogIsEvidenceAndNoProof) {
  const Fault log = signal_of(FaultSource::MpsLog, FaultClass::Unknown, 12, "a", victim, "client fault");
  const Culprit culprit = judge({xid(8, 43, server, "a"), log});
  expect(culprit, Confidence::Unknown, {});
  EXPECT_THAT(culprit.evidence, Contains(HasSubstr("MPS log names process 200")));
}

}  // namespace
}  // namespace firebreak::fault
