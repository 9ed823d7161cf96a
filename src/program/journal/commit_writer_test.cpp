// SPDX-License-Identifier: Apache-2.0
#include "program/journal/commit_writer.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "tests/doubles/journal/commit_test_support.h"

namespace firebreak::journal {
namespace {

using testing::HasSubstr;

struct CommitJournalTest : testing::Test, Tenancy {
  std::string recovered_text() { return text_of(recover_next().value().state); }
};

TEST_F(CommitJournalTest, NothingCommittedMeansStartFromTheBeginning) {
  const os::Mapping fresh = std::move(os::Mapping::anonymous(sizeof(abi::SharedMemory)).value());
  EXPECT_EQ(recover(*fresh.as<abi::SharedMemory>(), 1).value().next_step, 0u);
  EXPECT_EQ(recover_next().value().next_step, 0u);
}

TEST_F(CommitJournalTest, FindsTheLastWholeState) {
  for (int step = 0; step < 1000; ++step) {
    commit("state " + std::to_string(step));
    gpu_catches_up();
    writer->fold_some();
  }
  EXPECT_EQ(recover_next().value().next_step, 1000u);
  EXPECT_EQ(recovered_text(), "state 999");
}

TEST_F(CommitJournalTest, ChangesAddUp) {
  commit("lengths: 00, tokens: --");
  change(9, "17");
  change(21, "ab");
  gpu_catches_up();
  EXPECT_EQ(recovered_text(), "lengths: 17, tokens: ab");
  writer->fold_all();
  EXPECT_EQ(recovered_text(), "lengths: 17, tokens: ab");
}

TEST_F(CommitJournalTest, ACommitThatTheGpuHasNotPassedIsNotFound) {
  commit("passed");
  gpu_catches_up();
  change(0, "queued");
  EXPECT_EQ(recovered_text(), "passed");
  writer->fold_all();
  EXPECT_EQ(recovered_text(), "passed");
}

TEST_F(CommitJournalTest, AStateWithoutBytesAndACommitWithoutChangesAreCommits) {
  commit("");
  ASSERT_TRUE(writer->append(NewState::of(std::span<const fb_change>())));
  gpu_catches_up();
  for (int i = 0; i < 2; ++i) {
    EXPECT_EQ(recover_next().value().next_step, 2u);
    EXPECT_EQ(recovered_text(), "");
    writer->fold_all();
  }
}

TEST_F(CommitJournalTest, TheStateGrowsByZeroesEvenWhereItOnceWasLarger) {
  commit(std::string(3000, 'x'));
  gpu_catches_up();
  writer->fold_all();
  commit("ab");
  change(2000, "c");
  gpu_catches_up();
  const std::string expected = "ab" + std::string(1998, '\0') + "c";
  EXPECT_EQ(recovered_text(), expected);
  writer->fold_all();
  EXPECT_EQ(recovered_text(), expected);
}

TEST_F(CommitJournalTest, TheLastByteOfTheLargestStateCanBeChanged) {
  change(abi::state_bytes_max - 1, "z");
  gpu_catches_up();
  writer->fold_all();
  const Recovered found = recover_next().value();
  EXPECT_EQ(found.state.size(), abi::state_bytes_max);
  EXPECT_EQ(found.state.back(), std::byte{'z'});
}

TEST_F(CommitJournalTest, IsFullUntilTheGpuHasPassedSomethingAndThatWasFolded) {
  for (std::size_t i = 0; i < abi::journal_entries; ++i) change(i % 7, std::string(1, char('a' + i % 26)));
  const fb_change one{0, "!", 1};
  EXPECT_FALSE(writer->append(NewState::of(std::span(&one, 1))));
  writer->fold_all();
  EXPECT_FALSE(writer->append(NewState::of(std::span(&one, 1))));
  area().next_step.store(1);
  EXPECT_FALSE(writer->append(NewState::of(std::span(&one, 1))));
  writer->fold_all();
  EXPECT_TRUE(writer->append(NewState::of(std::span(&one, 1))));
  EXPECT_FALSE(writer->append(NewState::of(std::span(&one, 1))));
  gpu_catches_up();
  EXPECT_EQ(recover_next().value().next_step, abi::journal_entries + 1);
  EXPECT_EQ(recovered_text().substr(0, 1), "!");
}

TEST_F(CommitJournalTest, TheLargestStatesFollowEachOtherOnceTheGpuHasPassedThem) {
  for (const char letter : {'a', 'b', 'c', 'd'}) {
    const Bytes large(abi::state_bytes_max, std::byte(letter));
    if (!writer->append(NewState::of(large))) {
      gpu_catches_up();
      writer->fold_all();
      ASSERT_TRUE(writer->append(NewState::of(large)));
    }
  }
  gpu_catches_up();
  const Recovered found = recover_next().value();
  EXPECT_EQ(found.state, Bytes(abi::state_bytes_max, std::byte('d')));
}

TEST_F(CommitJournalTest, WhatIsTakenBackLeavesNoTrace) {
  commit("kept");
  commit("a longer one that the driver refused");
  writer->retract();
  change(4, "!");
  gpu_catches_up();
  EXPECT_EQ(recover_next().value().next_step, 2u);
  EXPECT_EQ(recovered_text(), "kept!");
}

TEST_F(CommitJournalTest, ASuccessorThatFellBeforeItTookOverHidesNothing) {
  commit("first");
  gpu_catches_up();
  EXPECT_EQ(text_of(fail_over().state), "first");
  commit("second");
  gpu_catches_up();
  // Epochs 2 and 3 were promoted and ended before they wrote a word.
  EXPECT_EQ(text_of(recover(shared, 2).value().state), "second");
  EXPECT_EQ(text_of(recover(shared, 3).value().state), "second");
  EXPECT_EQ(text_of(recover(shared, 4).value().state), "second");
  EXPECT_EQ(text_of(recover(shared, 1'000'000).value().state), "second");
}

// The one that is fenced may be anywhere on its way into office, and go on there.
TEST_F(CommitJournalTest, TwoOnTheWayIntoOfficeNeverMeetAndNeverTouchWhatWasCommitted) {
  commit("first");
  gpu_catches_up();
  for (int i = 0; i < 20; ++i) {
    const Recovered found = recover(shared, epoch + 1).value();
    const std::size_t fenced = abi::journal_for(epoch + 1, found.journal);
    const std::size_t successor = abi::journal_for(epoch + 2, found.journal);
    EXPECT_NE(fenced, found.journal.value());
    EXPECT_NE(successor, found.journal.value());
    EXPECT_NE(fenced, successor);
    epoch += static_cast<std::uint64_t>(i % 3);
    fail_over();
  }
  EXPECT_NE(abi::journal_for(0, std::nullopt), abi::journal_for(1, std::nullopt));
}

TEST_F(CommitJournalTest, AFencedOneThatComesIntoOfficeLateHidesNothing) {
  commit("first");
  gpu_catches_up();
  const Recovered early = recover(shared, ++epoch).value();
  fail_over();
  commit("second");
  gpu_catches_up();
  const CommitWriter late(shared, epoch - 1, early);
  EXPECT_EQ(recovered_text(), "second");
  EXPECT_FALSE(recover(shared, epoch).has_value()) << "its own epoch has begun";
}

TEST_F(CommitJournalTest, WhoWasInOfficeIsNotForgottenWithItsMarks) {
  commit("state");
  fail_over();
  std::memset(journal().marks, 0, sizeof journal().marks);
  EXPECT_THAT(recover_next().error().message, HasSubstr("whose journal 2 is does not verify"));
}

TEST_F(CommitJournalTest, WhatWasTakenOverIsFoundByEveryLaterSuccessor) {
  commit("early");
  commit("late");
  gpu_catches_up();
  for (int i = 0; i < 10; ++i) {
    const Recovered found = fail_over();
    EXPECT_EQ(found.next_step, 2u);
    EXPECT_EQ(text_of(found.state), "late");
  }
}

TEST_F(CommitJournalTest, AnOldEpochsJournalIsNeverTakenForTheNewOnes) {
  for (int step = 0; step < 12; ++step) commit("epoch 0, step " + std::to_string(step));
  area().next_step.store(10);
  const abi::CommitArea* first = &area();
  do fail_over();
  while (&area() != first);
  // The same journal as in epoch 0, whose entries are still there.
  area().next_step.store(9);
  EXPECT_FALSE(recover_next().has_value());
  area().next_step.store(11);
  const auto found = recover_next();
  ASSERT_FALSE(found.has_value());
  EXPECT_EQ(found.error().code, ErrorCode::Protocol);
  EXPECT_EQ(found.error().message, "step 10 was committed, but its forward state is not whole");
}

TEST_F(CommitJournalTest, AnActiveThatIsFencedReachesNothingOfItsSuccessors) {
  commit("before");
  gpu_catches_up();
  CommitWriter fenced = std::move(*writer);
  fail_over();
  commit("after");
  gpu_catches_up();
  const Bytes stray = bytes_of("stray");
  ASSERT_TRUE(fenced.append(NewState::of(stray)));
  fenced.area().next_step.store(2);
  fenced.fold_all();
  EXPECT_EQ(recovered_text(), "after");
}

TEST_F(CommitJournalTest, AnAdoptedAreaHasNothingInFlight) {
  commit("state");
  gpu_catches_up();
  abi::CommitArea& reused = shared.page.areas[abi::journal_for(1, 0)];
  reused.queued_step = 9;
  reused.heartbeats_queued = 9;
  fail_over();
  EXPECT_FALSE(abi::progress_of(reused).in_flight);
  EXPECT_EQ(abi::progress_of(reused).done, 1u);
}

TEST_F(CommitJournalTest, ATornEntryIsAnErrorAndNeverUsed) {
  commit("whole");
  gpu_catches_up();
  journal().payloads[0] ^= std::byte{0xff};
  const auto found = recover_next();
  ASSERT_FALSE(found.has_value());
  EXPECT_EQ(found.error().message, "step 0 was committed, but its forward state is not whole");
}

TEST_F(CommitJournalTest, DamageToTheImageIsNotHealedByLaterCommits) {
  commit(std::string(2000, 'x'));
  change(0, "y");
  gpu_catches_up();
  writer->fold_all();
  journal().image[100] ^= std::byte{1};
  change(1, "z");  // changed in the same block
  gpu_catches_up();
  writer->fold_all();
  const auto found = recover_next();
  ASSERT_FALSE(found.has_value());
  EXPECT_EQ(found.error().message, "forward state: block 0 does not verify");
}

TEST_F(CommitJournalTest, ACounterThatCannotBeIsNoticed) {
  commit("state");
  gpu_catches_up();
  writer->fold_all();
  area().next_step.store(0);
  EXPECT_THAT(recover_next().error().message, HasSubstr("step counter is 0, with 1 steps in the image"));
  area().next_step.store(2);
  EXPECT_THAT(recover_next().error().message, HasSubstr("step 1 was committed, but"));
  change(0, "s");
  gpu_catches_up();
  change(0, "S");
  area().next_step.store(1);  // the step is not folded yet, and the newest entry knows better
  EXPECT_EQ(recover_next().error().message, "the GPU's step counter is 1, and was 2 before");
  area().next_step.store(~std::uint64_t{0});
  EXPECT_THAT(recover_next().error().message, HasSubstr("step counter is"));
}

TEST(CommitEntry, ChangesThatDoNotFitAreRefused) {
  const auto refused = [](const fb_change& change) { return !check(NewState::of(std::span(&change, 1))); };
  const char byte = 'x';
  EXPECT_FALSE(refused({abi::state_bytes_max - 1, &byte, 1}));
  EXPECT_TRUE(refused({abi::state_bytes_max, &byte, 1}));
  EXPECT_TRUE(refused({~std::uint64_t{0}, &byte, 1}));
  EXPECT_TRUE(refused({1, &byte, ~std::size_t{0}}));
  EXPECT_TRUE(refused({0, nullptr, 1}));
  EXPECT_FALSE(refused({0, nullptr, 0}));
  const Bytes large(abi::state_bytes_max);
  const fb_change all{0, large.data(), large.size()};
  const std::vector<fb_change> too_many(2, all);
  EXPECT_TRUE(check(NewState::of(std::span(too_many).first(1))));
  EXPECT_FALSE(check(NewState::of(std::span<const fb_change>(too_many))));
}

TEST(CommitEntry, APayloadThatIsNoSequenceOfChangesIsNotApplied) {
  const char byte = 'x';
  const fb_change change{4, &byte, 1};
  const NewState state = NewState::of(std::span(&change, 1));
  Bytes payload(payload_bytes_of(state));
  write_payload(state, payload);
  Bytes target;
  EXPECT_TRUE(apply_payload(abi::EntryKind::Changes, payload, 5, target));
  EXPECT_EQ(target[4], std::byte{'x'});
  target.clear();
  EXPECT_FALSE(apply_payload(abi::EntryKind::Changes, payload, 4, target));
  EXPECT_FALSE(apply_payload(abi::EntryKind::Changes, std::span(payload).first(20), 5, target));
  EXPECT_FALSE(apply_payload(abi::EntryKind{7}, payload, 5, target));
  target.resize(9);
  EXPECT_FALSE(apply_payload(abi::EntryKind::Changes, payload, 5, target));
}

}  // namespace
}  // namespace firebreak::journal
