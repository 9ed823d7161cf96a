// SPDX-License-Identifier: Apache-2.0
#include "agent/faults/watch/isolation_detector.h"

#include <gmock/gmock.h>

#include "tests/doubles/watch/isolation_test_support.h"

namespace firebreak::watch {
namespace {

using testing::ElementsAre;
using testing::IsEmpty;

class IsolationDetectorTest : public DetectorTest {
 protected:
  IsolationDetectorTest()
      : detector_(
            *loop_, kernel_,
            [this](const IsolationEvent& event) {
              heard_.push_back(event.sequence);
              pids_.push_back(event.pid.value_or(0));
            },
            note_end()) {}

  std::vector<pid_t> pids_;
  std::vector<std::uint64_t> heard_;
  IsolationDetector detector_;
};

TEST_F(IsolationDetectorTest, IsNotThereWithTheStockModule) {
  EXPECT_EQ(detector_.start().error().code, ErrorCode::NotFound);
}

TEST_F(IsolationDetectorTest, SaysWhenItMayNotRead) {
  kernel_.refuse(isolation_events_path, Error{ErrorCode::PermissionDenied, "Permission denied", {}});
  EXPECT_EQ(detector_.start().error().code, ErrorCode::PermissionDenied);
}

TEST_F(IsolationDetectorTest, TellsWhatHappensFromNowOnAndEachOnce) {
  FakeIsolation module(kernel_);
  module.add(1);
  module.add(2);
  ASSERT_TRUE(detector_.start());
  settle();
  EXPECT_THAT(heard_, IsEmpty());
  module.add(3);
  settle();
  EXPECT_THAT(heard_, ElementsAre(3u));
  module.add(4);
  module.add(5);
  settle();
  EXPECT_THAT(heard_, ElementsAre(3u, 4u, 5u));
  EXPECT_EQ(detector_.counters().events, 3u);
  EXPECT_EQ(detector_.counters().lost, 0u);
}

TEST_F(IsolationDetectorTest, CountsWhatWasOverwritten) {
  FakeIsolation module(kernel_);
  ASSERT_TRUE(detector_.start());
  module.add(1);
  settle();
  module.forget();
  module.add(130);
  settle();
  EXPECT_THAT(heard_, ElementsAre(1u, 130u));
  EXPECT_EQ(detector_.counters().lost, 128u);
}

// A storm has pushed the event of another client out of the ring.
TEST_F(IsolationDetectorTest, TellsWhoIsCondemnedWhereEventsWereLost) {
  FakeIsolation module(kernel_);
  kernel_.set_file(isolation_condemned_path,
                   "condemned pid=7 command=a b\ncondemned pid=4711 command=rogue\n");
  ASSERT_TRUE(detector_.start());
  module.add(1);
  settle();
  EXPECT_THAT(pids_, ElementsAre(4711));
  module.forget();
  module.add(130);
  settle();
  EXPECT_THAT(pids_, ElementsAre(4711, 4711, 7, 4711));
}

TEST_F(IsolationDetectorTest, PassesOverALineThatItDoesNotUnderstand) {
  FakeIsolation module(kernel_);
  ASSERT_TRUE(detector_.start());
  module.add_line("nonsense");
  module.add(1);
  settle();
  EXPECT_THAT(heard_, ElementsAre(1u));
  EXPECT_EQ(detector_.counters().malformed, 1u);
}

TEST_F(IsolationDetectorTest, EndsWhenTheFileCannotBeReadAnyMore) {
  FakeIsolation module(kernel_);
  ASSERT_TRUE(detector_.start());
  module.break_off();
  settle();
  ASSERT_EQ(ends_.size(), 1u);
  EXPECT_EQ(ends_[0].code, ErrorCode::Internal);
  module.add(1);
  settle();
  EXPECT_THAT(heard_, IsEmpty());
}

}  // namespace
}  // namespace firebreak::watch
