// SPDX-License-Identifier: Apache-2.0
// Tests that what is written is read, whatever happened to the ring in between.
#include <gtest/gtest.h>

#include <algorithm>
#include <cstring>
#include <latch>
#include <random>
#include <set>
#include <thread>
#include <vector>

#include "ground/os/memory.h"
#include "program/redo/ring_reader.h"
#include "program/redo/ring_writer.h"
#include "tests/doubles/base/test_seed.h"

namespace firebreak::redo {
namespace {

constexpr std::size_t data_bytes = std::size_t{256} << 10;
constexpr std::size_t file_bytes = sizeof(abi::RedoRing) + data_bytes;

class RingTest : public ::testing::Test {
 protected:
  void SetUp() override {
    auto file = os::create_memory_file(abi::redo_ring_name, file_bytes);
    ASSERT_TRUE(file);
    descriptor = *std::move(file);
    auto mapped = os::Mapping::of_file(descriptor.get(), file_bytes, os::Protection::ReadWrite);
    ASSERT_TRUE(mapped);
    mapping = std::make_unique<os::Mapping>(*std::move(mapped));
    writer = RingWriter::make(memory());
    ASSERT_TRUE(writer);
  }

  std::span<std::byte> memory() { return {static_cast<std::byte*>(mapping->data()), file_bytes}; }
  std::span<std::byte> data() { return memory().subspan(sizeof(abi::RedoRing)); }
  RedoLog log() {
    const auto read = read_ring(memory());
    EXPECT_TRUE(read);
    return read ? *read : RedoLog{};
  }

  void launch(std::uint64_t kernel, std::size_t parameter_bytes) {
    abi::RedoLaunch one{};
    one.kernel = kernel;
    one.grid[0] = static_cast<std::uint32_t>(kernel);
    std::vector<std::byte> parameters(parameter_bytes);
    for (std::size_t i = 0; i < parameter_bytes; ++i) parameters[i] = static_cast<std::byte>(kernel + i);
    writer->launch(kernel % 3, one, parameters);
  }
  // Checks an operation of launch().
  static bool is_whole(const RedoLog& log, const RedoEntry& entry) {
    const auto payload = log.payload(entry);
    bool whole = entry.kind == abi::RedoKind::Launch &&
                 entry.body.launch.grid[0] == static_cast<std::uint32_t>(entry.body.launch.kernel) &&
                 entry.stream == entry.body.launch.kernel % 3;
    for (std::size_t i = 0; i < payload.size(); ++i)
      whole = whole && payload[i] == static_cast<std::byte>(entry.body.launch.kernel + i);
    return whole;
  }

  os::Fd descriptor;
  std::unique_ptr<os::Mapping> mapping;
  std::optional<RingWriter> writer;
};

TEST_F(RingTest, AllKindsComeBack) {
  launch(7, 100);
  writer->copy(1, {{10, 20, 30, 40}, {50, 60, 70, 80}});
  writer->fill(2, {{11, 21, 31, 41}, 0xABCD, 2});
  const std::vector<std::byte> bytes(24, std::byte{9});
  writer->upload(3, {{12, 8, 16, 3}}, bytes);
  writer->record_event(4, 77);
  writer->wait_for_event(5, 78);
  writer->save(6, {100, 200, 300, {4, 0, 5}});
  writer->start_region(7, {6, 0, 9});
  writer->cannot_redo(8, abi::RedoCause::Collective);
  writer->completed(6).store(12);
  const RedoLog read = log();
  ASSERT_EQ(read.entries.size(), 9U);
  EXPECT_FALSE(read.is_cut || read.has_gap);
  EXPECT_TRUE(is_whole(read, read.entries[0]));
  EXPECT_EQ(read.entries[0].payload_bytes, 100U);
  EXPECT_EQ(read.entries[1].body.copy.from.rows, 80U);
  EXPECT_EQ(read.entries[2].body.fill.value, 0xABCDU);
  EXPECT_EQ(read.payload(read.entries[3]).size(), 24U);
  EXPECT_EQ(read.payload(read.entries[3])[23], std::byte{9});
  EXPECT_EQ(read.entries[4].body.event.event, 77U);
  EXPECT_EQ(read.entries[5].kind, abi::RedoKind::EventWait);
  EXPECT_EQ(read.entries[6].body.save.done.value, 5U);
  EXPECT_EQ(read.entries[7].body.region.before.count, 6U);
  EXPECT_EQ(read.entries[8].cause, abi::RedoCause::Collective);
  EXPECT_EQ(read.completed[6], 12U);
  for (std::size_t i = 1; i < 9; ++i) EXPECT_EQ(read.entries[i].stream, i);
}

TEST_F(RingTest, ItOutlivesItsWriter) {
  launch(3, 40);
  writer.reset();
  mapping.reset();
  const auto again = os::Mapping::of_file(descriptor.get(), file_bytes, os::Protection::Read);
  ASSERT_TRUE(again);
  const auto read = read_ring({static_cast<const std::byte*>(again->data()), file_bytes});
  ASSERT_TRUE(read);
  ASSERT_EQ(read->entries.size(), 1U);
  EXPECT_TRUE(is_whole(*read, read->entries[0]));
}

TEST_F(RingTest, TheOldIsOverwrittenAndTheNewIsWhole) {
  std::mt19937_64 random(test_seed());
  constexpr std::uint64_t count = 20'000;
  for (std::uint64_t i = 0; i < count; ++i) launch(i, random() % 400);
  const RedoLog read = log();
  EXPECT_TRUE(read.is_cut);
  EXPECT_FALSE(read.has_gap);
  ASSERT_GT(read.entries.size(), 500U);
  for (std::size_t i = 0; i < read.entries.size(); ++i) {
    EXPECT_TRUE(is_whole(read, read.entries[i]));
    EXPECT_EQ(read.entries[i].body.launch.kernel, count - read.entries.size() + i);
  }
}

TEST_F(RingTest, ALastRecordThatWasNotWrittenToItsEndWasNotGivenToTheGpu) {
  for (std::uint64_t i = 0; i < 3; ++i) launch(i, 8);
  std::memset(data().data() + 2 * 128, 0, 8);
  EXPECT_EQ(log().entries.size(), 2U);
  EXPECT_FALSE(log().has_gap);
  std::memset(data().data() + 128, 0, 8);  // only this one was
  launch(3, 8);
  EXPECT_TRUE(log().has_gap);
}

TEST_F(RingTest, ALastRecordThatIsDamagedIsAGap) {
  for (std::uint64_t i = 0; i < 3; ++i) launch(i, 8);
  data()[2 * 128 + 40] ^= std::byte{1};
  EXPECT_TRUE(log().has_gap);
}

TEST_F(RingTest, WhatIsTooLargeCannotBeDoneAgain) {
  launch(1, abi::redo_payload_max);
  launch(2, abi::redo_payload_max + 1);
  const RedoLog read = log();
  ASSERT_EQ(read.entries.size(), 2U);
  EXPECT_TRUE(is_whole(read, read.entries[0]));
  EXPECT_EQ(read.entries[1].kind, abi::RedoKind::CannotRedo);
}

TEST_F(RingTest, SizesInsideARecordHaveToAgree) {
  const std::vector<std::byte> bytes(24);
  writer->upload(3, {{12, 8, 16, 4}}, bytes);
  EXPECT_TRUE(log().has_gap);
  SetUp();
  writer->save(6, {100, 200, 300, {abi::redo_counts_max, 0, 5}});
  EXPECT_TRUE(log().has_gap);
  SetUp();
  writer->fill(6, {{1, 2, 3, 4}, 5, 3});
  EXPECT_TRUE(log().has_gap);
}

// A whole record of the lap before is where the last one was to be.
TEST_F(RingTest, WhatIsLeftOfTheLapBeforeIsNotReadAgain) {
  constexpr std::uint64_t in_a_lap = data_bytes / 128;
  for (std::uint64_t i = 0; i < in_a_lap; ++i) launch(i, 8);
  const std::vector<std::byte> old(data().begin(), data().begin() + 128);
  launch(in_a_lap, 8);
  std::copy(old.begin(), old.end(), data().begin());
  const RedoLog read = log();
  EXPECT_TRUE(read.is_cut);
  EXPECT_FALSE(read.has_gap);
  ASSERT_EQ(read.entries.size(), in_a_lap - 1);
  EXPECT_EQ(read.entries.back().body.launch.kernel, in_a_lap - 1);
}

TEST_F(RingTest, ARecordThatGoesOverTheEndIsDamaged) {
  for (std::uint64_t i = 0; i < 3; ++i) launch(i, 8);
  const std::uint64_t next = 3 * 128 - 64;
  std::memcpy(memory().data() + offsetof(abi::RedoRing, next_bytes), &next, sizeof(next));
  EXPECT_EQ(log().entries.size(), 2U);
  EXPECT_TRUE(log().has_gap);
}

// The ring begins in the middle of a record, with what could be a record's number there.
TEST_F(RingTest, ThePartOfARecordIsNoDamage) {
  for (std::uint32_t i = 0; i < 3'000; ++i) {
    abi::RedoLaunch one{};
    one.shared_bytes = 2 * i + 2;
    writer->launch(0, one, {});
  }
  writer->cannot_redo(0, abi::RedoCause::Unknown);
  const RedoLog read = log();
  EXPECT_TRUE(read.is_cut);
  EXPECT_FALSE(read.has_gap);
  EXPECT_EQ(read.entries.size(), data_bytes / 128);
}

TEST_F(RingTest, ThreadsMayWriteAtOnce) {
  constexpr std::uint64_t each = 400;
  for (int round = 0; round < 50 && !HasFailure(); ++round) {
    SetUp();
    std::latch together(4);
    std::vector<std::thread> threads;
    for (std::uint64_t t = 0; t < 4; ++t)
      threads.emplace_back([this, t, &together] {
        together.arrive_and_wait();
        for (std::uint64_t i = 0; i < each; ++i) launch(1'000 * t + i, i % 90);
      });
    for (std::thread& thread : threads) thread.join();
    const RedoLog read = log();
    EXPECT_FALSE(read.has_gap || read.is_cut);
    std::set<std::uint64_t> seen;
    for (const RedoEntry& entry : read.entries) {
      EXPECT_TRUE(is_whole(read, entry));
      seen.insert(entry.body.launch.kernel);
    }
    EXPECT_EQ(seen.size(), 4 * each);
    EXPECT_EQ(read.entries.size(), 4 * each);
  }
}

TEST_F(RingTest, OnlyRingsOfThisVersionAndSizeAreRead) {
  launch(1, 8);
  for (std::size_t size = 0; size < file_bytes; size += 4'093) EXPECT_FALSE(read_ring(memory().first(size)));
  std::vector<std::byte> twice(memory().begin(), memory().end());
  twice.insert(twice.end(), memory().begin(), memory().end());
  EXPECT_FALSE(read_ring(twice));
  // The memory is of another size than it says, and smaller than any record.
  std::vector<std::byte> more(memory().begin(), memory().end());
  more.resize(file_bytes + data_bytes);
  EXPECT_FALSE(read_ring(more));
  const std::uint64_t tiny = 64;
  more.resize(sizeof(abi::RedoRing) + tiny);
  std::memcpy(more.data() + offsetof(abi::RedoRing, capacity_bytes), &tiny, sizeof(tiny));
  EXPECT_FALSE(read_ring(more));
  memory()[4] ^= std::byte{3};
  EXPECT_FALSE(read_ring(memory()));
  std::vector<std::byte> small(4096 + 1024);
  EXPECT_FALSE(RingWriter::make(small));
  std::vector<std::byte> odd(file_bytes + 4096);
  EXPECT_FALSE(RingWriter::make(odd));
  RingMemory pages(file_bytes + 4096);
  EXPECT_TRUE(RingWriter::make(pages.bytes().first(file_bytes)));
  EXPECT_FALSE(RingWriter::make(pages.bytes().subspan(64, file_bytes))) << "not where a page begins";
}

// Whatever is read is what was written. A change of what was written to its end is seen.
TEST_F(RingTest, DamageIsSeenOrHarmless) {
  std::mt19937_64 random(test_seed());
  for (std::uint64_t i = 0; i < 600; ++i) launch(i, random() % 200);
  const std::vector<std::byte> sound(memory().begin(), memory().end());
  const std::size_t used = log().entries.back().sequence * abi::redo_unit_bytes;
  int seen = 0;
  for (int round = 0; round < 300; ++round) {
    std::copy(sound.begin(), sound.end(), memory().begin());
    for (std::uint64_t i = 1 + random() % 3; i > 0; --i) {
      const std::size_t at = random() % used;
      const std::size_t count = std::min<std::size_t>(1 + random() % 100, used - at);
      const std::uint64_t how = random() % 3;
      for (std::size_t k = 0; k < count; ++k)
        data()[at + k] = how == 0   ? static_cast<std::byte>(random())
                         : how == 1 ? data()[random() % used]
                                    : std::byte{0};
      if (how == 2) std::memmove(data().data() + at / 64 * 64, data().data() + random() % used / 64 * 64, 64);
    }
    const RedoLog read = log();
    for (const RedoEntry& entry : read.entries) ASSERT_TRUE(is_whole(read, entry));
    seen += read.has_gap ? 1 : 0;
  }
  EXPECT_GT(seen, 250);  // the others hit what is between records
}

TEST_F(RingTest, AnythingCanBeRead) {
  std::mt19937_64 random(test_seed());
  for (int round = 0; round < 60; ++round) {
    for (std::byte& each : data()) each = static_cast<std::byte>(random() % 5);
    std::uint64_t next = random() % 3 == 0 ? random() : random() % (4 * data_bytes);
    next = next / 64 * 64;
    std::memcpy(memory().data() + offsetof(abi::RedoRing, next_bytes), &next, sizeof(next));
    // Records that say that they are there, with any size.
    for (std::size_t at = 0; at < data_bytes; at += 64) {
      const std::uint64_t lap =
          next > data_bytes ? (next - data_bytes + data_bytes - 1 - at) / data_bytes : 0;
      const std::uint64_t sequence = (lap * data_bytes + at) / 64 + 1;
      const auto size = static_cast<std::uint32_t>(random() % 3 == 0 ? random() : random() % 300);
      std::memcpy(data().data() + at, &sequence, sizeof(sequence));
      std::memcpy(data().data() + at + 16, &size, sizeof(size));
      data()[at + 20] = static_cast<std::byte>(random() % 11);
      data()[at + 21] = std::byte{0};
    }
    EXPECT_TRUE(log().entries.empty());
  }
}

}  // namespace
}  // namespace firebreak::redo
