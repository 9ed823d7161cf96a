// SPDX-License-Identifier: Apache-2.0
// Tests of what a guarded process counts of its launches, read as the outside reads it.
#include "program/guard/work_log.h"

#include <gmock/gmock.h>

#include <memory>

#include "shared/guard_page/work_view.h"

namespace firebreak::guard {
namespace {

using testing::ElementsAre;
using testing::IsEmpty;
using testing::SizeIs;

CUstream stream(std::uintptr_t number) { return reinterpret_cast<CUstream>(number * 64); }

class WorkLogTest : public testing::Test {
 protected:
  abi::GuardLaunches* slot(CUstream of, StreamKind kind = StreamKind::Independent,
                           WorkLog::Thread thread = 1) {
    return log_.slot(thread, of, kind);
  }
  static void begin(abi::GuardLaunches* launches, std::uint16_t kernel = 0) {
    const std::uint32_t before = launches->begun.load();
    launches->kernel[before % abi::guard_launches_kept].store(kernel);
    launches->begun.store(before + 1);
  }
  static void launch(abi::GuardLaunches* launches, std::uint16_t kernel = 0) {
    begin(launches, kernel);
    launches->launched.store(launches->begun.load());
  }
  /// Plays what the driver does for a marker, and what the GPU does when it comes to it.
  void put_markers() {
    for (const WorkLog::Due& due : log_.due()) log_.marked(due);
  }
  void reach(const abi::GuardLaunches* launches, std::uint32_t number) {
    work_->done[launches - work_->launches].store(number);
  }
  LaunchState state() const { return state_of(*work_); }
  std::string in_flight(Since since = Since::Now) const {
    return describe_kernels(kernels_in_flight(*work_, since));
  }
  std::uint16_t kernel(const std::string& name) { return log_.kernel(name); }

  std::unique_ptr<abi::GuardWork> work_ = [] {
    auto work = std::make_unique<abi::GuardWork>();
    work->kernels.store(1);
    return work;
  }();
  WorkLog log_{*work_};
};

TEST_F(WorkLogTest, WhoHasLaunchedNothingHasNothingUnderWay) { EXPECT_EQ(state(), LaunchState::Ended); }

TEST_F(WorkLogTest, ALaunchIsKnownToRunFromItsMarkerOnAndToHaveEndedWithIt) {
  auto* const launches = slot(stream(1));
  begin(launches);
  EXPECT_EQ(state(), LaunchState::Unknown);
  EXPECT_THAT(log_.due(), IsEmpty());  // the driver has not returned
  launches->launched.store(1);
  EXPECT_EQ(state(), LaunchState::Unknown);
  put_markers();
  EXPECT_EQ(state(), LaunchState::Running);
  EXPECT_THAT(log_.due(), IsEmpty());
  reach(launches, 1);
  EXPECT_EQ(state(), LaunchState::Ended);
}

// A program that has waited may end at once, before any marker.
TEST_F(WorkLogTest, WhatSomebodyHasWaitedForHasEndedWithoutAMarker) {
  auto* const first = slot(stream(1));
  auto* const second = slot(stream(2));
  launch(first);
  launch(second);
  const auto in_first = log_.under_way_in(1, stream(1));
  ASSERT_THAT(in_first, SizeIs(1));
  log_.ended(in_first[0]);
  EXPECT_EQ(state(), LaunchState::Unknown);  // the second runs on
  const auto all = log_.under_way();
  launch(first);
  for (const WorkLog::Due& each : all) log_.ended(each);
  EXPECT_EQ(state(), LaunchState::Unknown);  // one came while somebody waited
  log_.all_begun_ended(*first);
  EXPECT_EQ(state(), LaunchState::Ended);
  EXPECT_THAT(log_.due(), IsEmpty());
}

TEST_F(WorkLogTest, AnEndThatWasSeenTakesNothingBackThatTheGpuSaidMeanwhile) {
  auto* const launches = slot(stream(1));
  launch(launches);
  const auto before = log_.under_way();
  launch(launches);
  reach(launches, 2);
  for (const WorkLog::Due& each : before) log_.ended(each);
  EXPECT_EQ(state(), LaunchState::Ended);
}

// The handle is the same for all of them.
TEST_F(WorkLogTest, AThreadHasWaitedForItsOwnDefaultStreamAlone) {
  launch(slot(stream(9), StreamKind::PerThread, 1));
  launch(slot(stream(9), StreamKind::PerThread, 2));
  const auto own = log_.under_way_in(1, stream(9));
  ASSERT_THAT(own, SizeIs(1));
  log_.ended(own[0]);
  EXPECT_EQ(state(), LaunchState::Unknown);
}

// The stream is as the legacy default stream beside streams that wait for it.
TEST_F(WorkLogTest, WhatMayHaveNoMarkerHasEndedOnceItsStreamWasFoundIdle) {
  auto* const launches = slot(nullptr, StreamKind::Legacy);
  log_.note_blocking_stream();
  launch(launches);
  EXPECT_THAT(log_.due(), IsEmpty());
  EXPECT_EQ(state(), LaunchState::Unknown);
  const auto asked = log_.unmarked();
  ASSERT_THAT(asked, SizeIs(1));
  launch(launches);  // this launch comes after the question: the answer says nothing of it
  log_.ended(asked.front());
  EXPECT_EQ(state(), LaunchState::Unknown);
  for (const auto& each : log_.unmarked()) log_.ended(each);
  EXPECT_EQ(state(), LaunchState::Ended);
  EXPECT_THAT(log_.unmarked(), IsEmpty());
}

TEST_F(WorkLogTest, OnlyItsOwnThreadCanAskAfterAThreadsDefaultStream) {
  launch(slot(stream(1), StreamKind::PerThread));
  EXPECT_THAT(log_.unmarked(), IsEmpty());
  EXPECT_THAT(log_.due(), IsEmpty());
}

// A call of the driver's is told by its name, and is no kernel.
TEST_F(WorkLogTest, ACopyIsNamedAsTheCallThatItIs) {
  auto* const launches = slot(stream(1));
  launch(launches, kernel("cuMemcpyAsync()"));
  EXPECT_EQ(in_flight(), "`cuMemcpyAsync()`");
  launch(launches, kernel("scale"));
  EXPECT_EQ(in_flight(), "one of `scale`, `cuMemcpyAsync()`");
}

TEST_F(WorkLogTest, ALaunchAfterTheLastMarkerMakesItUnknownAgain) {
  auto* const launches = slot(stream(1));
  launch(launches);
  put_markers();
  launch(launches);
  EXPECT_EQ(state(), LaunchState::Unknown);
  reach(launches, 1);
  EXPECT_EQ(state(), LaunchState::Unknown);
  put_markers();
  EXPECT_EQ(state(), LaunchState::Running);
  reach(launches, 2);
  EXPECT_EQ(state(), LaunchState::Ended);
}

TEST_F(WorkLogTest, NumbersWrap) {
  auto* const launches = slot(stream(1));
  launches->begun.store(0xffffffff);
  launches->launched.store(0xffffffff);
  launches->marked.store(0xffffffff);
  reach(launches, 0xffffffff);
  launch(launches, kernel("last"));
  put_markers();
  EXPECT_EQ(launches->marked.load(), 0u);
  EXPECT_EQ(state(), LaunchState::Running);
  EXPECT_EQ(in_flight(), "kernel `last`");
  reach(launches, 0);
  EXPECT_EQ(state(), LaunchState::Ended);
}

TEST_F(WorkLogTest, OneStreamThatRunsIsEnough) {
  auto* const first = slot(stream(1));
  auto* const second = slot(stream(2));
  launch(first);
  put_markers();
  launch(second);
  EXPECT_EQ(state(), LaunchState::Running);
  reach(first, 1);
  EXPECT_EQ(state(), LaunchState::Unknown);
}

TEST_F(WorkLogTest, EachThreadCountsForItself) {
  EXPECT_NE(slot(stream(1)), slot(stream(1), StreamKind::Independent, 2));
  EXPECT_EQ(slot(stream(1)), slot(stream(1)));
}

TEST_F(WorkLogTest, OfAThreadThatEndsTheNextOneTakesOver) {
  auto* const launches = slot(stream(1));
  launch(launches);
  log_.thread_ended(1);
  EXPECT_NE(slot(stream(2), StreamKind::Independent, 2), launches);  // its launch is under way
  EXPECT_EQ(slot(stream(1), StreamKind::Independent, 2), launches);
}

TEST_F(WorkLogTest, AStreamThatIsGoneLeavesItsSlotWhenItsWorkHasEnded) {
  auto* const launches = slot(stream(1));
  launch(launches);
  EXPECT_THAT(log_.due_of(stream(2)), IsEmpty());
  for (const WorkLog::Due& due : log_.due_of(stream(1))) log_.marked(due);
  log_.stream_gone(stream(1));
  EXPECT_EQ(state(), LaunchState::Running);
  EXPECT_NE(slot(stream(1)), launches);  // the stream is another one, by the same handle
  reach(launches, 1);
  EXPECT_EQ(state(), LaunchState::Ended);
  EXPECT_EQ(slot(stream(3)), launches);
}

TEST_F(WorkLogTest, WhoHasMoreStreamsThanThereAreSlotsIsNotKnown) {
  for (std::size_t n = 1; n <= abi::guard_launch_slots_max; ++n) EXPECT_NE(slot(stream(n)), nullptr);
  EXPECT_FALSE(log_.is_full());
  EXPECT_EQ(slot(stream(1000)), nullptr);
  EXPECT_TRUE(log_.is_full());
  EXPECT_EQ(state(), LaunchState::Unknown);
}

TEST_F(WorkLogTest, NoMarkerWhereItWouldOrderWhatTheProgramHasNot) {
  auto* const legacy = slot(nullptr, StreamKind::Legacy);
  launch(legacy);
  EXPECT_THAT(log_.due(), SizeIs(1));
  auto* const blocking = slot(stream(1), StreamKind::Blocking);
  launch(blocking);
  EXPECT_THAT(log_.due(), IsEmpty());
  auto* const independent = slot(stream(2));
  launch(independent);
  EXPECT_THAT(log_.due(), SizeIs(1));
  EXPECT_EQ(state(), LaunchState::Unknown);
}

TEST_F(WorkLogTest, NoMarkerIntoTheDefaultStreamFromTheFirstBlockingOneOn) {
  launch(slot(nullptr, StreamKind::Legacy));
  log_.note_blocking_stream();
  EXPECT_THAT(log_.due(), IsEmpty());
}

TEST_F(WorkLogTest, NorIntoAnotherThreadsDefaultStream) {
  launch(slot(stream(1), StreamKind::PerThread));
  EXPECT_THAT(log_.due(), IsEmpty());
  EXPECT_EQ(state(), LaunchState::Unknown);
}

TEST_F(WorkLogTest, NoFurtherMarkerWhileMuchIsUnfinished) {
  auto* const launches = slot(stream(1));
  launch(launches);
  put_markers();
  for (int n = 0; n < 64; ++n) launch(launches);
  EXPECT_THAT(log_.due(), IsEmpty());
  reach(launches, 1);
  EXPECT_THAT(log_.due(), SizeIs(1));
}

TEST_F(WorkLogTest, WhatIsCapturedOrNotCountedIsNotKnown) {
  log_.capture_begins();
  EXPECT_EQ(state(), LaunchState::Unknown);
  log_.capture_ends();
  EXPECT_EQ(state(), LaunchState::Ended);
  log_.note_gap(abi::GuardWorkUncounted);
  EXPECT_EQ(state(), LaunchState::Unknown);
}

TEST_F(WorkLogTest, WithItsContextAllHasEnded) {
  launch(slot(stream(1)));
  log_.all_ended();
  EXPECT_EQ(state(), LaunchState::Ended);
}

TEST_F(WorkLogTest, NamesWhatIsUnderWay) {
  auto* const launches = slot(stream(1));
  EXPECT_EQ(in_flight(), "");
  launch(launches, kernel("scale"));
  launch(launches, kernel("scale"));
  EXPECT_EQ(in_flight(), "kernel `scale`");
  launch(slot(stream(2)), kernel("a`dd\n"));
  EXPECT_EQ(in_flight(), "one of `scale`, `a?dd?`");
  reach(launches, 2);
  EXPECT_EQ(in_flight(), "kernel `a?dd?`");
  for (const char* name : {"a", "b", "c", "d"}) launch(launches, kernel(name));
  EXPECT_EQ(in_flight(), "one of `d`, `c`, `b` and 2 others");
}

TEST_F(WorkLogTest, NamesNothingWhereItDoesNotKnowAll) {
  auto* const launches = slot(stream(1));
  launch(launches, 0);
  launch(launches, kernel("scale"));
  EXPECT_EQ(in_flight(), "");
  reach(launches, 1);
  EXPECT_EQ(in_flight(), "kernel `scale`");
  for (std::size_t n = 0; n < abi::guard_launches_kept; ++n) launch(launches, kernel("scale"));
  EXPECT_EQ(in_flight(), "");
  reach(launches, 2);
  EXPECT_EQ(in_flight(), "kernel `scale`");
  launches->kernel[5].store(abi::guard_kernels_max + 3);  // nonsense
  EXPECT_EQ(in_flight(), "");
}

TEST_F(WorkLogTest, WhatEndedAMomentAgoIsNamedForWhatWasSeenThen) {
  auto* const launches = slot(stream(1));
  launch(launches, kernel("scale"));
  put_markers();
  reach(launches, 1);
  EXPECT_TRUE(log_.settle());
  EXPECT_EQ(in_flight(), "");
  EXPECT_EQ(in_flight(Since::Lately), "kernel `scale`");
  EXPECT_FALSE(log_.settle());
  EXPECT_EQ(in_flight(Since::Lately), "");
}

TEST_F(WorkLogTest, MoreNamesThanThereIsRoomForAreNone) {
  for (std::size_t n = 1; n < abi::guard_kernels_max; ++n) EXPECT_EQ(kernel(std::to_string(n)), n);
  EXPECT_EQ(kernel("one more"), 0);
  EXPECT_EQ(kernel("7"), 7);
  EXPECT_EQ(kernel(""), 0);
}

}  // namespace
}  // namespace firebreak::guard
