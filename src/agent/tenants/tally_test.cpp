// SPDX-License-Identifier: Apache-2.0
#include "agent/tenants/tally.h"

#include "tests/doubles/agent/agent_test_support.h"

namespace firebreak::agent {
namespace {

using fault::FaultClass;
using pair::Phase;

class TallyTest : public testing::Test {
 protected:
  FakeClock clock;
  FakeDomains domains;
  Tenants tenants;
  std::set<std::string> held;  ///< domains
  std::set<pid_t> with_spares;
  Tally tally{{clock, domains, tenants},
              {[this](const std::string& domain) { return held.contains(domain); },
               [this](pid_t pid) { return with_spares.contains(pid); },
               [](pid_t pid) { return pid == 1 ? "/kubepods/pod1" : ""; }, nullptr,
               [this](const PastFault& fault) { told.push_back(fault.id); }, [this] { return wall; }}};
  std::uint64_t last_id = 0;
  std::vector<std::string> told;                       ///< ids of the faults that were counted
  WallTime wall{std::chrono::seconds(1'764'403'805)};  ///< 2025-11-29T08:10:05Z

  TallyTest() { tally.begin({}); }

  static Member member(pid_t pid, const std::string& domain) {
    Member made;
    made.pid = pid;
    made.domain = domain;
    return made;
  }
  Tenant& serves(const std::string& name, const std::string& domain, pid_t pid) {
    Tenant& tenant = tenants.put(Tenant::create(name, 0).value());
    tenant.pair.phase = Phase::Serving;
    tenant.active = member(pid, domain);
    return tenant;
  }
  /// Promotes as the agent does: the standby is the active by then.
  void promote(Tenant& tenant, const std::string& to, Fence fence = Fence::Xid) {
    clock.advance(Milliseconds(1));
    tenant.old_active = tenant.active;
    tenant.active = member(tenant.active.pid + 1, to);
    move(tenant, Phase::Promoting);
    tally.promoted(tenant.name(), tenant.old_active.domain, fence);
  }
  void move(Tenant& tenant, Phase to) {
    const Phase before = std::exchange(tenant.pair.phase, to);
    tally.moved_on(tenant.name(), before, to);
  }
  void end(Tenant& tenant) {
    tenant.active.pid = 0;
    move(tenant, Phase::Lost);
  }
  /// Makes a fault of an SM in "a", which ends all its clients, by nobody who is known.
  fault::Incident sm_fault() {
    fault::Incident incident;
    incident.id = ++last_id;
    incident.fault_class = FaultClass::Sm;
    incident.domain = "a";
    fault::Fault signal;
    signal.fault_class = FaultClass::Sm;
    signal.domain = "a";
    signal.when = clock.now();
    incident.signals = {signal};
    return incident;
  }
  void hear(const fault::Incident& incident) { tally.on_incident(incident); }
  void close(fault::Incident incident) {
    incident.closed = true;
    hear(incident);
  }
  /// Its domain is held from then on.
  void park(const fault::Incident& incident) {
    held = {"a"};
    hear(incident);
    close(incident);
  }
  /// Lets the domain fall as the agent does.
  void fall() {
    tally.fell("a");
    held.clear();
  }
  std::uint64_t sm_faults(FaultOutcome outcome) { return tally.counts().of_fault(FaultClass::Sm, outcome); }
  std::uint64_t all_faults() {
    std::uint64_t sum = 0;
    for (const auto& of_class : tally.counts().faults)
      for (const std::uint64_t each : of_class) sum += each;
    return sum;
  }
  const PastFault& last() {
    last_counts_ = tally.counts();
    return last_counts_.past_faults.back();
  }
  std::string became(const std::string& tenant) {
    for (const Touched& each : last().touched) {
      if (each.tenant == tenant) return each.became;
    }
    return "not there";
  }
  static void name(fault::Incident& incident, const Tenant& tenant) {
    incident.culprit = {fault::Confidence::Certain, tenant.active.pid, tenant.name(), {"its dump says so"}};
  }

 private:
  Counts last_counts_;
};

TEST_F(TallyTest, AFaultHasOneIdFromItsFirstWordOn) {
  serves("rogue", "a", 1);
  auto incident = sm_fault();
  EXPECT_EQ(tally.on_incident(incident), "1mjnajx");
  wall += std::chrono::seconds(70);
  clock.advance(std::chrono::seconds(70));
  incident.closed = true;
  EXPECT_EQ(tally.on_incident(incident), "1mjnajx");
  EXPECT_EQ(last().id, "1mjnajx");
  EXPECT_EQ(last().at, "2025-11-29T08:10:05Z") << "when it happened, and not when it was over";
  EXPECT_EQ(told, std::vector<std::string>{"1mjnajx"});
  tally.contained(FaultClass::MmuReplayable, {to_ns(clock.now()), {}, {}, "a", "rogue", "a stray"});
  EXPECT_EQ(last().at, "2025-11-29T08:11:15Z");
  ASSERT_EQ(told.size(), 2u);
  EXPECT_EQ(told.back(), last().id);
}

TEST_F(TallyTest, OfAGpuThatIsNotOursThereIsNoId) {
  Tally other({clock, domains, tenants},
              {[](const std::string&) { return false; }, [](pid_t) { return false; }, nullptr,
               [](const fault::Gpu&, const std::string&) { return false; }});
  EXPECT_EQ(other.on_incident(sm_fault()), "");
}

TEST_F(TallyTest, AnAccountSaysWhatBecameOfEverybodyWhoWasThere) {
  const Tenant& rogue = serves("rogue", "a", 1);
  Tenant& llm = serves("llm", "a", 2);
  Tenant& moved = serves("moved", "a", 4);
  Tenant& finished = serves("finished", "a", 5);
  Tenant& ended = serves("ended", "a", 6);
  serves("unaware", "a", 7);
  serves("elsewhere", "b", 8);
  Tenant& beside = serves("beside", "b", 9);
  beside.standby = member(10, "a");
  auto incident = sm_fault();
  incident.xids = {13, 43};
  hear(incident);
  promote(llm, "b");
  moved.active.domain = "b";
  move(finished, Phase::Finished);
  end(ended);
  beside.standby.pid = 0;
  name(incident, rogue);
  close(incident);
  EXPECT_EQ(became("rogue"), "not there") << "it is the culprit";
  EXPECT_EQ(became("llm"), "its standby goes on");
  EXPECT_EQ(became("moved"), "left by its spare, and goes on in domain b");
  EXPECT_EQ(became("finished"), "finished in good order");
  EXPECT_EQ(became("ended"), "ended");
  EXPECT_EQ(became("unaware"), "lost with its domain");
  EXPECT_EQ(became("elsewhere"), "not there");
  EXPECT_EQ(became("beside"), "its standby was there, and ended");
  EXPECT_EQ(last().touched.size(), 6u);
  EXPECT_EQ(last().xids, (std::vector<int>{13, 43}));
  EXPECT_EQ(last().saw, std::vector<std::string>{"its dump says so"});
  EXPECT_EQ(sm_faults(FaultOutcome::Lost), 1u);
}

TEST_F(TallyTest, WhoGoesOnElsewhereWithItsSpareIsNotLost) {
  const Tenant& rogue = serves("rogue", "a", 1);
  Tenant& moved = serves("moved", "a", 4);
  auto incident = sm_fault();
  hear(incident);
  moved.active.domain = "b";
  name(incident, rogue);
  close(incident);
  EXPECT_EQ(sm_faults(FaultOutcome::Lost), 0u);
  EXPECT_EQ(sm_faults(FaultOutcome::Contained), 1u);
}

TEST_F(TallyTest, OfAFaultInNoDomainOnlyThoseAreToldOfWhomSomethingBecame) {
  serves("well", "a", 1);
  Tenant& ended = serves("ended", "b", 2);
  auto incident = sm_fault();
  incident.domain = "";
  hear(incident);
  end(ended);
  close(incident);
  EXPECT_EQ(became("ended"), "ended");
  EXPECT_EQ(became("well"), "not there");
}

TEST_F(TallyTest, AnAccountNamesTheReportsOfItsExceptionsAlone) {
  serves("rogue", "a", 1);
  tally.note_report("b", "of another domain");
  tally.note_report("a", "first");
  auto incident = sm_fault();
  incident.signals[0].source = fault::FaultSource::CoreDump;
  hear(incident);
  tally.note_report("a", "second");
  close(incident);
  EXPECT_EQ(last().reports, (std::vector<std::string>{"first", "second"}));
  clock.advance(std::chrono::seconds(9));
  close(sm_fault());
  EXPECT_THAT(last().reports, testing::IsEmpty());
}

TEST_F(TallyTest, AFaultIsCountedOnceWhenItIsClosed) {
  const auto incident = sm_fault();
  hear(incident);
  hear(incident);
  EXPECT_EQ(all_faults(), 0u);
  close(incident);
  EXPECT_EQ(all_faults(), 1u);
}

TEST_F(TallyTest, NobodyElseIsHarmedByAFaultOfWhoeverIsAlone) {
  const Tenant& rogue = serves("rogue", "a", 1);
  serves("llm", "b", 2);
  auto incident = sm_fault();
  hear(incident);
  name(incident, rogue);
  close(incident);
  EXPECT_EQ(sm_faults(FaultOutcome::Contained), 1u);
  EXPECT_EQ(tally.counts().known_culprits, 1u);
  EXPECT_EQ(tally.counts().past_faults.at(0).culprit, "rogue");
  EXPECT_EQ(tally.counts().past_faults.at(0).domain, "a");
  EXPECT_EQ(tally.counts().past_faults.at(0).control_group, "/kubepods/pod1");
}

TEST_F(TallyTest, ATenantWhoseStandbyWentOnHasFailedOver) {
  const Tenant& rogue = serves("rogue", "a", 1);
  Tenant& llm = serves("llm", "a", 2);
  auto incident = sm_fault();
  hear(incident);
  promote(llm, "b");
  name(incident, rogue);
  close(incident);
  EXPECT_EQ(sm_faults(FaultOutcome::FailedOver), 1u);
}

TEST_F(TallyTest, AlsoWhereThePromotionWasSoonerThanTheFirstWord) {
  serves("rogue", "a", 1);
  Tenant& llm = serves("llm", "a", 2);
  const auto incident = sm_fault();
  promote(llm, "b");
  close(incident);
  EXPECT_EQ(sm_faults(FaultOutcome::FailedOver), 1u);
  EXPECT_EQ(tally.counts().unknown_culprits, 1u);
  EXPECT_EQ(tally.counts().past_faults.at(0).culprit, "");
}

TEST_F(TallyTest, ANeighbourWithoutAStandbyIsLostAlsoBeforeItHasNoticed) {
  const Tenant& rogue = serves("rogue", "a", 1);
  Tenant& llm = serves("llm", "a", 2);
  serves("plain", "a", 3);
  auto incident = sm_fault();
  hear(incident);
  promote(llm, "b");
  name(incident, rogue);
  close(incident);
  EXPECT_EQ(sm_faults(FaultOutcome::Lost), 1u);
}

TEST_F(TallyTest, OneWhomNobodyNamesIsAmongThoseThatEnded) {
  serves("rogue", "a", 1);
  close(sm_fault());
  EXPECT_EQ(sm_faults(FaultOutcome::Contained), 1u);
  serves("plain", "a", 2);
  close(sm_fault());
  EXPECT_EQ(sm_faults(FaultOutcome::Lost), 1u);
}

TEST_F(TallyTest, AFaultInAParkedDomainIsCountedOnceThatHasFallen) {
  serves("rogue", "a", 1);
  Tenant& plain = serves("plain", "a", 2);
  park(sm_fault());
  EXPECT_EQ(all_faults(), 0u) << "who is there may still leave";
  end(plain);
  EXPECT_EQ(all_faults(), 0u);
  fall();
  EXPECT_EQ(sm_faults(FaultOutcome::Parked), 1u);
}

TEST_F(TallyTest, NothingComesOfAFaultInAParkedDomainWhereItsCulpritWasAlone) {
  const Tenant& rogue = serves("rogue", "a", 1);
  serves("elsewhere", "b", 2);
  auto incident = sm_fault();
  name(incident, rogue);
  park(incident);
  fall();
  EXPECT_EQ(sm_faults(FaultOutcome::Contained), 1u);
  EXPECT_TRUE(last().touched.empty());
}

TEST_F(TallyTest, WhoIsThereWhenAParkedDomainFallsIsLost) {
  const Tenant& rogue = serves("rogue", "a", 1);
  serves("plain", "a", 2);
  auto incident = sm_fault();
  name(incident, rogue);
  park(incident);
  fall();
  EXPECT_EQ(sm_faults(FaultOutcome::Lost), 1u);
  EXPECT_EQ(all_faults(), 1u);
}

TEST_F(TallyTest, WhoHasLeftAParkedDomainIsNotLostInItsFall) {
  const Tenant& rogue = serves("rogue", "a", 1);
  Tenant& handed_over = serves("handed-over", "a", 2);
  Tenant& moved = serves("moved", "a", 4);
  const Tenant& moves = serves("moves", "a", 5);
  with_spares = {moves.active.pid};
  auto incident = sm_fault();
  name(incident, rogue);
  park(incident);
  promote(handed_over, "b", Fence::HandOver);
  move(handed_over, Phase::Serving);
  moved.active.domain = "b";
  fall();
  EXPECT_EQ(sm_faults(FaultOutcome::Parked), 1u);
}

TEST_F(TallyTest, TheFallOfAParkedDomainIsNoFaultOfItsOwn) {
  const Tenant& rogue = serves("rogue", "a", 1);
  serves("plain", "a", 2);
  auto incident = sm_fault();
  name(incident, rogue);
  park(incident);
  clock.advance(Milliseconds(5'000));
  const auto words_of_the_fall = sm_fault();
  fall();
  const std::string id = last().id;
  EXPECT_EQ(tally.on_incident(words_of_the_fall), id);
  auto with_xid = words_of_the_fall;
  with_xid.xids = {43};
  with_xid.closed = true;
  EXPECT_EQ(tally.on_incident(with_xid), id);
  EXPECT_EQ(last().xids, std::vector<int>{43});
  EXPECT_EQ(told.size(), 1u);
  EXPECT_EQ(sm_faults(FaultOutcome::Lost), 1u);
  EXPECT_EQ(all_faults(), 1u);
  clock.advance(Milliseconds(5'000));
  close(sm_fault());
  EXPECT_EQ(all_faults(), 2u) << "the domain is another one by now";
}

TEST_F(TallyTest, AnotherExceptionInAParkedDomainIsOneMore) {
  serves("rogue", "a", 1);
  park(sm_fault());
  clock.advance(Milliseconds(2'000));
  auto second = sm_fault();
  second.signals[0].source = fault::FaultSource::CoreDump;
  close(second);
  fall();
  EXPECT_EQ(all_faults(), 2u);
  EXPECT_EQ(sm_faults(FaultOutcome::Parked), 2u);
}

TEST_F(TallyTest, AParkedDomainWhoseFallNobodyTellsIsDecidedOnceItIsNotHeldAnyMore) {
  serves("rogue", "a", 1);
  park(sm_fault());
  held.clear();
  Tenant& other = serves("other", "b", 7);
  move(other, Phase::Finished);
  EXPECT_EQ(sm_faults(FaultOutcome::Parked), 1u);
}

TEST_F(TallyTest, NothingIsCountedWhileSomebodyIsInDoubt) {
  const Tenant& rogue = serves("rogue", "a", 1);
  Tenant& llm = serves("llm", "a", 2);
  auto incident = sm_fault();
  hear(incident);
  name(incident, rogue);
  move(llm, Phase::Suspecting);
  close(incident);
  EXPECT_EQ(all_faults(), 0u);
  end(llm);
  EXPECT_EQ(sm_faults(FaultOutcome::Lost), 1u);
}

TEST_F(TallyTest, WhoHasFinishedIsNotLost) {
  const Tenant& rogue = serves("rogue", "a", 1);
  Tenant& llm = serves("llm", "a", 2);
  auto incident = sm_fault();
  hear(incident);
  name(incident, rogue);
  move(llm, Phase::Finished);
  close(incident);
  EXPECT_EQ(sm_faults(FaultOutcome::Contained), 1u);
}

TEST_F(TallyTest, AKilledActiveWhoseStandbyGoesOnHasFailedOverAndOneWithoutIsNobodysLoss) {
  Tenant& llm = serves("llm", "a", 1);
  fault::Incident incident = sm_fault();
  incident.fault_class = incident.signals[0].fault_class = FaultClass::Termination;
  hear(incident);
  name(incident, llm);
  promote(llm, "b", Fence::Exit);
  close(incident);
  EXPECT_EQ(tally.counts().of_fault(FaultClass::Termination, FaultOutcome::FailedOver), 1u);
  EXPECT_EQ(tally.counts().of_promotion(Fence::Exit), 1u);
  incident.id = ++last_id;
  clock.advance(Milliseconds(1));
  incident.signals[0].when = clock.now();
  hear(incident);
  end(llm);
  close(incident);
  EXPECT_EQ(tally.counts().of_fault(FaultClass::Termination, FaultOutcome::Contained), 1u);
}

TEST_F(TallyTest, APromotionLastsUntilTheTenantServes) {
  Tenant& llm = serves("llm", "a", 1);
  promote(llm, "b");
  clock.advance(Milliseconds(30));
  move(llm, Phase::Serving);
  const DurationCounts times = tally.counts().promotion_times;
  EXPECT_EQ(times.counts[3], 1u);  // 25 to 50 ms
  EXPECT_EQ(times.sum_us, 30'000u);
}

TEST_F(TallyTest, RestartsOfDomainsAreAddedToThoseThatAgentsBeforeHaveSeen) {
  Counts before;
  before.agent_starts = 4;
  before.domain_restarts["a"] = {2, 3};
  Tally next({clock, domains, tenants},
             {[](const std::string&) { return false; }, [](pid_t) { return false; }, nullptr});
  next.begin(before);
  EXPECT_EQ(next.counts().agent_starts, 5u);
  EXPECT_EQ(next.counts().domain_restarts["a"].of_server, 3u);
  EXPECT_EQ(next.counts().domain_restarts.count("b"), 1u);
}

TEST(Fences, AreWhatPromotionsComeFrom) {
  EXPECT_EQ(fence_of(pair::EventType::FenceSeen), Fence::Xid);
  EXPECT_EQ(fence_of(pair::EventType::ActiveExited), Fence::Exit);
  EXPECT_EQ(fence_of(pair::EventType::ActiveStoodDown), Fence::HandOver);
  EXPECT_EQ(fence_of(pair::EventType::StandbyReady), Fence::Earlier);
}

}  // namespace
}  // namespace firebreak::agent
