// SPDX-License-Identifier: Apache-2.0
#include "commands/nri/offer_watch.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <atomic>

namespace firebreak::nri {
namespace {

/// Answers the thread's question each time it is let go on.
class OfferWatchTest : public testing::Test {
 protected:
  bool until(const std::function<bool()>& holds) const {
    for (int i = 0; i < 1'000 && !holds(); ++i) wait_for_a_question();
    return holds();
  }
  void wait_for_a_question() const {
    const int before = questions.load();
    while (questions.load() == before) std::this_thread::yield();
  }
  mutable std::atomic<int> questions = 0;
  std::atomic<bool> answers = true;
  FakeClock clock;
  std::mutex mutex;  ///< guards lines
  std::vector<std::string> lines;
  OfferWatch::Surroundings surroundings() {
    return {
        clock,
        [this]() -> Result<std::string> {
          ++questions;
          if (!answers) return fail(ErrorCode::Unavailable, "it is away");
          return R"({"tenants_socket": "/t.sock", "domains": [{"name": "a", "gpu": "G", "state": "serving"}],
              "tenants": [{"name": "ml.llm", "active": {"pid": 7, "domain": "a"}}, {"name": "ml.lost"}]})";
        },
        [this](const std::string& line) {
          const std::lock_guard lock(mutex);
          lines.push_back(line);
        },
        Milliseconds(1)};
  }
};

TEST_F(OfferWatchTest, OffersNothingFirstAndThenWhatTheAgentSays) {
  OfferWatch watch({"/s.sock", nullptr, 1, std::chrono::seconds(30), "", ""}, surroundings());
  ASSERT_TRUE(watch.start());
  ASSERT_NE(watch.offer(), nullptr);
  EXPECT_TRUE(until([&] { return watch.offer()->seats.size() == 1; }));
  EXPECT_TRUE(watch.offer()->seats.at(0).is_healthy);
}

TEST_F(OfferWatchTest, KnowsInWhichDomainTenantsHaveTheirActive) {
  answers = false;
  OfferWatch watch({"/s.sock", nullptr, 1, std::chrono::seconds(30), "", ""}, surroundings());
  ASSERT_TRUE(watch.start());
  EXPECT_THAT(watch.actives(), testing::IsEmpty());
  answers = true;
  ASSERT_TRUE(until([&] { return !watch.actives().empty(); }));
  EXPECT_EQ(watch.actives(), (Actives{{"ml.llm", "a"}}));
  answers = false;
  EXPECT_TRUE(until([&] { return watch.actives().empty(); })) << "nobody knows any more";
}

TEST_F(OfferWatchTest, AnAgentThatIsAwayChangesNothingUntilItsPatienceIsOver) {
  {
    OfferWatch watch({"/s.sock", nullptr, 1, Nanoseconds(0), "", ""}, surroundings());
    ASSERT_TRUE(watch.start());
    ASSERT_TRUE(until([&] { return watch.offer()->seats.size() == 1; }));
    answers = false;
    EXPECT_TRUE(until([&] { return !watch.offer()->seats.at(0).is_healthy; }));
    answers = true;
    EXPECT_TRUE(until([&] { return watch.offer()->seats.at(0).is_healthy; }));
  }
  EXPECT_THAT(lines, testing::Contains("it is away").Times(1)) << "told once, however often it was asked";
}

}  // namespace
}  // namespace firebreak::nri
