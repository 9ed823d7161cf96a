// SPDX-License-Identifier: Apache-2.0
/// Random histories of commits, a GPU that counts at its own pace, processes that die between any two stores,
/// and damage anywhere: what is recovered is what a plain model says, or nothing is.
#include <gtest/gtest.h>

#include <cstring>
#include <iostream>
#include <set>

#include "tests/doubles/journal/commit_test_support.h"
#include "tests/doubles/journal/test_random.h"

namespace firebreak::journal {
namespace {

/// The active's process ends here.
struct Died {};

class History {
 public:
  explicit History(std::uint64_t seed) : random_(seed) {
    steps_.push_back({});
    begin_tenure(Recovered{});
  }

  /// One thing that an active, its GPU or its end does.
  void go_on() {
    try {
      switch (random_.below(16)) {
        case 0:
          return fail_over();
        case 1:
        case 2:
        case 3:
          return count();
        case 4:
          return writer_->fold_all();
        case 5:
          return commit_whole();
        case 6:
          stores_until_death_ = 1 + random_.below(200);
          return;
        default:
          return commit_changes();
      }
    } catch (const Died&) {
      writer_.reset();
      fail_over();
    }
  }

  /// Checks what a successor would find now.
  void check() {
    ++checks_;
    const auto found = recover(shared_, epoch_ + 1);
    ASSERT_TRUE(found.has_value()) << to_string(found.error());
    ASSERT_EQ(found->next_step, counted());
    ASSERT_EQ(found->state, steps_[counted()]);
  }

  /// Damages something that is in use, looks, and puts it right again.
  void damage_and_check() {
    auto [begin, size] = somewhere_in_use();
    size = 1 + random_.below(std::min<std::size_t>(size, random_.once_in(2) ? 1 : 512));
    const Bytes good(begin, begin + size);
    const bool zeroes = random_.once_in(4);
    for (std::byte& byte : std::span(begin, size)) byte = zeroes ? std::byte{0} : random_.byte();
    expect_right_or_nothing();
    std::memcpy(begin, good.data(), size);
  }

  /// The same with what was there at an earlier time.
  void remember() {
    old_.assign(begin_of_use(), begin_of_use() + sizeof(abi::ImageMark) * 2);
    old_place_ = begin_of_use();
    const auto [begin, size] = somewhere_in_use();
    if (random_.once_in(3)) return;
    old_.assign(begin, begin + size);
    old_place_ = begin;
  }
  void damage_by_the_past_and_check() {
    if (old_.empty()) return;
    const Bytes good(old_place_, old_place_ + old_.size());
    std::memcpy(old_place_, old_.data(), old_.size());
    expect_right_or_nothing();
    std::memcpy(old_place_, good.data(), good.size());
  }

  std::uint64_t checks() const { return checks_; }
  std::uint64_t refusals() const { return refusals_; }

 private:
  std::uint64_t counted() { return counter().load(); }
  std::atomic<std::uint64_t>& counter() { return shared_.page.areas[office_].next_step; }
  abi::CommitJournal& journal() { return shared_.journals[office_]; }

  void after_a_store() {
    if (stores_until_death_ > 0 && --stores_until_death_ == 0) throw Died{};
    if (random_.once_in(20) && !is_taking_over_) count();
    if (random_.once_in(4)) check();
  }

  void count() {
    const std::uint64_t open = published_ - counted();
    if (open > 0) counter().store(counted() + 1 + random_.below(open));
  }

  void append(const NewState& state, Bytes after) {
    steps_.resize(published_ + 1);
    steps_.push_back(std::move(after));
    while (!writer_->append(state)) {
      counter().store(published_);
      writer_->fold_all();
    }
    if (random_.once_in(10)) {  // the driver refused
      writer_->retract();
      return;
    }
    ++published_;
    if (!random_.once_in(3)) writer_->fold_some();
  }

  void commit_whole() {
    Bytes state(random_.once_in(3) ? 0 : random_.below(3000));
    for (std::byte& byte : state) byte = random_.byte();
    append(NewState::of(state), state);
  }

  void commit_changes() {
    Bytes after = steps_[published_];
    std::vector<fb_change> changes(random_.below(5));
    std::vector<Bytes> contents(changes.size());
    for (std::size_t i = 0; i < changes.size(); ++i) {
      Bytes& content = contents[i];
      content.resize(random_.once_in(5) ? random_.below(1500) : random_.below(40));
      for (std::byte& byte : content) byte = random_.byte();
      const std::size_t offset = random_.below(random_.once_in(20) ? 4000 : after.size() + 1);
      changes[i] = {offset, content.data(), content.size()};
      after.resize(std::max(after.size(), offset + content.size()));
      if (!content.empty()) std::memcpy(after.data() + offset, content.data(), content.size());
    }
    append(NewState::of(std::span<const fb_change>(changes)), after);
  }

  /// Fails over; any number of those who are to take over never get to it, or die on the way into office.
  void fail_over() {
    const bool is_bad_day = random_.once_in(4);
    for (;;) {
      const std::uint64_t expected = counted();
      const bool dies = is_bad_day ? !random_.once_in(10) : random_.once_in(3);
      stores_until_death_ = dies ? 1 + random_.below(400) : 0;
      epoch_ += 1 + (random_.once_in(3) ? random_.below(5) : 0);
      const Recovered found = recover(shared_, epoch_).value();
      ASSERT_EQ(found.next_step, expected);
      ASSERT_EQ(found.state, steps_[expected]);
      try {
        return begin_tenure(found);
      } catch (const Died&) {
        // The next one finds the same.
      }
    }
  }

  void begin_tenure(const Recovered& found) {
    writer_.reset();
    is_taking_over_ = true;
    writer_.emplace(shared_, epoch_, found, SharedStores([this] { after_a_store(); }));
    is_taking_over_ = false;
    office_ = abi::journal_for(epoch_, found.journal);
    published_ = found.next_step;
    old_.clear();
  }

  struct Place {
    std::byte* begin;
    std::size_t size;
  };
  template <class T>
  static Place place_of(T& object) {
    return {reinterpret_cast<std::byte*>(&object), sizeof object};
  }
  std::byte* begin_of_use() { return place_of(journal().marks).begin; }
  Place somewhere_in_use() {
    const std::size_t blocks = steps_[published_].size() / abi::image_block_bytes + 1;
    Place place{};
    switch (random_.below(6)) {
      case 0:
        place = place_of(journal().marks);
        break;
      case 1:
        place = place_of(journal().entries[random_.below(std::min<std::uint64_t>(published_ + 1, 256))]);
        break;
      case 2:
        place = {place_of(journal().sums).begin, blocks * sizeof journal().sums[0]};
        break;
      case 3:
        place = {journal().payloads, 70'000};
        break;
      case 4:
        place = {journal().image, blocks * abi::image_block_bytes};
        break;
      default:
        place = place_of(counter());
    }
    const std::size_t skipped = random_.below(place.size);
    return {place.begin + skipped, place.size - skipped};
  }

  /// The GPU's counter is the one word that is taken as it is: then the state is that of the step it names.
  void expect_right_or_nothing() {
    ++checks_;
    const auto found = recover(shared_, epoch_ + 1);
    if (!found) {
      EXPECT_EQ(found.error().code, ErrorCode::Protocol);
      ++refusals_;
      return;
    }
    ASSERT_EQ(found->next_step, counted());
    ASSERT_LE(found->next_step, published_ + 1);  // one may have been appended that the GPU was not told of
    ASSERT_EQ(found->state, steps_[found->next_step]);
  }

  TestRandom random_;
  os::Mapping mapping_ = std::move(os::Mapping::anonymous(sizeof(abi::SharedMemory)).value());
  abi::SharedMemory& shared_ = *mapping_.as<abi::SharedMemory>();
  std::uint64_t epoch_ = 0;      ///< epoch of the process that was promoted last
  std::size_t office_ = 0;       ///< the journal of the last that took over
  std::uint64_t published_ = 0;  ///< the GPU was told of all steps before
  std::vector<Bytes> steps_;     ///< the state before each step
  std::optional<CommitWriter> writer_;
  std::size_t stores_until_death_ = 0;  ///< 0: it lives
  bool is_taking_over_ = false;
  Bytes old_;
  std::byte* old_place_ = nullptr;
  std::uint64_t checks_ = 0;
  std::uint64_t refusals_ = 0;
};

TEST(CommitModel, AtEveryStoreAProcessMayDieAndTheSuccessorFindsTheModelsState) {
  TestRandom seeds;
  std::cout << seeds.how_to_repeat() << '\n';
  std::uint64_t checks = 0;
  for (int run = 0; run < 60 && !testing::Test::HasFailure(); ++run) {
    const std::uint64_t seed = seeds.below(~std::size_t{0});
    SCOPED_TRACE("run " + std::to_string(run));
    History history(seed);
    for (int i = 0; i < 400 && !testing::Test::HasFailure(); ++i) history.go_on();
    checks += history.checks();
  }
  EXPECT_GT(checks, 10'000u);
}

TEST(CommitModel, DamageAnywhereIsRecognisedOrHarmless) {
  TestRandom seeds;
  std::cout << seeds.how_to_repeat() << '\n';
  std::uint64_t refusals = 0;
  for (int run = 0; run < 60 && !testing::Test::HasFailure(); ++run) {
    SCOPED_TRACE("run " + std::to_string(run));
    History history(seeds.below(~std::size_t{0}));
    for (int i = 0; i < 100 && !testing::Test::HasFailure(); ++i) {
      history.go_on();
      if (i % 5 == 0) history.remember();
      for (int n = 0; n < 10; ++n) history.damage_and_check();
      history.damage_by_the_past_and_check();
    }
    refusals += history.refusals();
  }
  EXPECT_GT(refusals, 1'000u);
}

}  // namespace
}  // namespace firebreak::journal
