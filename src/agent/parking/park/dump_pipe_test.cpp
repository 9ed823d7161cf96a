// SPDX-License-Identifier: Apache-2.0
#include "agent/parking/park/dump_pipe.h"

#include <fcntl.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <cstdint>
#include <cstring>
#include <thread>
#include <utility>

#include "ground/os/file.h"
#include "ground/os/real_kernel.h"
#include "tests/doubles/park/test_dump.h"

namespace firebreak::park {
namespace {

class DumpPipeTest : public testing::Test {
 protected:
  void SetUp() override {
    auto made = os::TemporaryDirectory::create();
    ASSERT_TRUE(made) << to_string(made.error());
    directory_.emplace(std::move(*made));
    path_ = directory_->path() + "/1.pipe";
    open_with(std::make_shared<DumpBudget>());
  }
  void open_with(std::shared_ptr<DumpBudget> budget) {
    auto opened = DumpPipe::open(kernel_, path_, std::move(budget));
    ASSERT_TRUE(opened) << to_string(opened.error());
    pipe_.emplace(std::move(*opened));
  }
  os::Fd writer() const { return os::Fd(::open(path_.c_str(), O_WRONLY | O_CLOEXEC)); }
  static void write(const os::Fd& to, std::size_t bytes) {
    const std::string text(bytes, 'd');
    ASSERT_EQ(::write(to.get(), text.data(), text.size()), static_cast<ssize_t>(bytes));
  }

  /// A process that writes it, at most so many bytes at once.
  std::thread start_dump(const std::string& dump, std::size_t bytes_a_write = SIZE_MAX) {
    return std::thread([this, &dump, bytes_a_write] {
      const os::Fd to = writer();
      for (std::size_t at = 0; at < dump.size();)
        at += static_cast<std::size_t>(
            ::write(to.get(), dump.data() + at, std::min(bytes_a_write, dump.size() - at)));
      is_through_ = true;
    });
  }
  void expect_the_rest(const std::string& dump, std::thread& dumping) {
    pipe_->let_end();
    while (pipe_->read() != DumpPipe::State::Done) std::this_thread::yield();
    dumping.join();
    ASSERT_EQ(pipe_->bytes().size(), dump.size());
    EXPECT_EQ(std::memcmp(pipe_->bytes().data(), dump.data(), dump.size()), 0);
  }

  std::atomic<bool> is_through_ = false;  ///< the dump of start_dump()
  os::RealKernel kernel_;
  std::optional<os::TemporaryDirectory> directory_;
  std::string path_;
  std::optional<DumpPipe> pipe_;
};

TEST_F(DumpPipeTest, BeforeAnybodyWritesThereIsNoDump) {
  EXPECT_EQ(pipe_->read(), DumpPipe::State::Silent);
  const os::Fd to = writer();
  EXPECT_EQ(pipe_->read(), DumpPipe::State::Silent);
}

TEST_F(DumpPipeTest, ADumpIsCompleteWhenItsWriterCloses) {
  os::Fd to = writer();
  write(to, 1000);
  EXPECT_EQ(pipe_->read(), DumpPipe::State::Writing);
  EXPECT_EQ(pipe_->read(), DumpPipe::State::Writing);
  to.reset();
  EXPECT_EQ(pipe_->read(), DumpPipe::State::Done);
  EXPECT_EQ(pipe_->bytes().size(), 1000U);
  EXPECT_FALSE(pipe_->is_cut());
}

// Its pipe is readable for ever: who watches it would never come to rest.
TEST_F(DumpPipeTest, ADumpThatEndsBeforeItsFirstByteIsAtItsEnd) {
  os::Fd to = writer();
  to.reset();
  EXPECT_EQ(pipe_->read(), DumpPipe::State::Done);
  EXPECT_TRUE(pipe_->bytes().empty());
}

/// Its process stands still in the middle of its dump until it is read.
TEST_F(DumpPipeTest, BeforeItIsReadLessThanADumpFits) {
  os::Fd to = writer();
  ASSERT_EQ(::fcntl(to.get(), F_SETFL, O_NONBLOCK), 0);
  const std::string dump(250'000, 'd');
  const ssize_t first = ::write(to.get(), dump.data(), dump.size());
  EXPECT_GT(first, 0);
  EXPECT_LT(first, 100'000);
  ASSERT_EQ(pipe_->read(), DumpPipe::State::Writing);
  const auto rest = dump.size() - static_cast<std::size_t>(first);
  ASSERT_EQ(::write(to.get(), dump.data(), rest), static_cast<ssize_t>(rest));
  to.reset();
  while (pipe_->read() == DumpPipe::State::Writing) continue;
  EXPECT_EQ(pipe_->bytes().size(), dump.size());
}

// Whoever has written the whole goes on with the program.
TEST_F(DumpPipeTest, AWriterIsHeldInTheLastOfItsDumpUntilItMayEnd) {
  const std::string dump = test::dump_of({{".cudbg.relfimg.dev0", 7, 0, std::string(50'000, '\0')}});
  std::thread dumping = start_dump(dump);
  while (pipe_->read() != DumpPipe::State::Nearly) std::this_thread::yield();
  EXPECT_LT(pipe_->bytes().size(), dump.size() - 4096) << "what is left is more than the pipe holds";
  EXPECT_EQ(pipe_->read(), DumpPipe::State::Nearly);
  while (!pipe_->look_ahead()) std::this_thread::yield();
  EXPECT_GE(pipe_->bytes().size(), dump.size() - 4096) << "and is known, but for a page";
  EXPECT_LT(pipe_->bytes().size(), dump.size());
  const std::size_t known = pipe_->bytes().size();
  EXPECT_TRUE(pipe_->look_ahead());
  EXPECT_EQ(pipe_->bytes().size(), known) << "nothing is there twice";
  EXPECT_EQ(pipe_->read(), DumpPipe::State::Nearly);
  EXPECT_FALSE(is_through_);
  expect_the_rest(dump, dumping);
}

// PyTorch's dump has 16 MB (H100). Through 4 KiB it took 200 ms longer.
TEST_F(DumpPipeTest, ALongDumpComesInFewPiecesAndIsHeldLikewise) {
  const std::string dump = test::dump_of({{".cudbg.relfimg.dev0", 7, 0, std::string(16'000'000, 'i')}});
  std::thread dumping = start_dump(dump);
  std::size_t pieces = 0, before = 0;
  while (pipe_->read() != DumpPipe::State::Nearly) {
    pieces += static_cast<std::size_t>(pipe_->came_bytes() != std::exchange(before, pipe_->came_bytes()));
    std::this_thread::yield();
  }
  EXPECT_LT(pieces, 1'000U) << "4 KiB a piece are 4,000";
  while (!pipe_->look_ahead()) std::this_thread::yield();
  EXPECT_GE(pipe_->bytes().size(), dump.size() - 4096);
  EXPECT_FALSE(is_through_);
  expect_the_rest(dump, dumping);
}

// A Transformers model's dump has 150 MB (H200). Through 64 KiB it took 400 ms longer.
TEST_F(DumpPipeTest, ThePipeIsWideUntilTheEndOfALongDumpComesNear) {
  const std::string dump = test::dump_of({{".cudbg.relfimg.dev0", 7, 0, std::string(32 << 20, 'i')}});
  const os::Fd to(::open(path_.c_str(), O_WRONLY | O_CLOEXEC | O_NONBLOCK));
  std::size_t wrote = 0, turns = 0;
  const auto fill = [&] {
    ssize_t more = 0;
    do {
      more = ::write(to.get(), dump.data() + wrote, dump.size() - wrote);
      wrote += static_cast<std::size_t>(std::max<ssize_t>(more, 0));
    } while (more > 0);
  };
  do {
    fill();
    ++turns;
  } while (pipe_->read() != DumpPipe::State::Nearly);
  EXPECT_LT(turns, 256U) << "64 KiB a turn are 512";
  EXPECT_EQ(::fcntl(to.get(), F_GETPIPE_SZ), 64 << 10) << "what is held can be seen";
  EXPECT_LT(wrote, dump.size());
}

// Its process may be stopped, or slow.
TEST_F(DumpPipeTest, AWriterThatNeverFillsAWidePipeIsReadAllTheSame) {
  const std::string dump = test::dump_of({{".cudbg.relfimg.dev0", 7, 0, std::string(12 << 20, 'i')}});
  const os::Fd to(::open(path_.c_str(), O_WRONLY | O_CLOEXEC | O_NONBLOCK));
  std::size_t wrote = 0;
  while (pipe_->read() != DumpPipe::State::Nearly) {
    if (pipe_->came_bytes() != wrote) continue;
    const ssize_t more =
        ::write(to.get(), dump.data() + wrote, std::min<std::size_t>(50'000, dump.size() - wrote));
    ASSERT_GT(more, 0);
    wrote += static_cast<std::size_t>(more);
  }
  EXPECT_EQ(::fcntl(to.get(), F_GETPIPE_SZ), 64 << 10);
}

/// A writer that fills each page of the pipe with less is not known in full, and nothing is there twice.
TEST_F(DumpPipeTest, OfPagesThatAreNotFullWhatIsThereIsKnown) {
  const std::string dump = test::dump_of({{".cudbg.relfimg.dev0", 7, 0, std::string(50'000, 'i')}});
  std::thread dumping = start_dump(dump, 3'000);
  while (pipe_->read() != DumpPipe::State::Nearly) std::this_thread::yield();
  const std::size_t read = pipe_->bytes().size();
  while (pipe_->bytes().size() < read + 3'000) (void)pipe_->look_ahead();
  EXPECT_LT(pipe_->bytes().size(), dump.size());
  EXPECT_EQ(std::memcmp(pipe_->bytes().data(), dump.data(), pipe_->bytes().size()), 0);
  expect_the_rest(dump, dumping);
}

// On a busy machine a process may not have come to write what it could.
TEST_F(DumpPipeTest, WhetherItsProcessCanWriteMoreIsSeen) {
  const std::string dump = test::dump_of({{".cudbg.relfimg.dev0", 7, 0, std::string(50'000, 'i')}});
  os::Fd to = writer();
  std::size_t wrote = 0;
  while (pipe_->read() != DumpPipe::State::Nearly) {
    ASSERT_EQ(::write(to.get(), dump.data() + wrote, 1'000), 1'000);
    wrote += 1'000;
    EXPECT_FALSE(pipe_->is_full());
  }
  EXPECT_FALSE(pipe_->look_ahead());
  EXPECT_FALSE(pipe_->is_full()) << "it may still be writing";
  std::thread dumping([&] {
    const std::string rest = dump.substr(wrote);
    for (std::size_t at = 0; at < rest.size();)
      at += static_cast<std::size_t>(
          ::write(to.get(), rest.data() + at, std::min<std::size_t>(2'100, rest.size() - at)));
    is_through_ = true;
    to.reset();
  });
  while (!pipe_->is_full()) std::this_thread::yield();
  EXPECT_FALSE(is_through_);
  expect_the_rest(dump, dumping);
}

/// A dump's word of itself is its process's: nobody makes room for it.
TEST_F(DumpPipeTest, AHeaderThatClaimsATerabyteTakesNoMemory) {
  std::string dump = test::dump_of({{".cudbg.relfimg.dev0", 7, 0, std::string(4'000, 'i')}});
  test::put(dump, 40, std::uint64_t{1} << 40);
  test::put(dump, 60, std::uint16_t{0});
  os::Fd to = writer();
  ASSERT_EQ(::write(to.get(), dump.data(), 4'000), 4'000);
  EXPECT_EQ(pipe_->read(), DumpPipe::State::Writing);
  EXPECT_EQ(pipe_->read(), DumpPipe::State::Writing);
  to.reset();
  while (pipe_->read() == DumpPipe::State::Writing) continue;
  EXPECT_EQ(pipe_->bytes().size(), 4'000U);
}

TEST_F(DumpPipeTest, WhatThePipeHoldsAsAWholeIsNotHeld) {
  const std::string dump = test::dump_of({{".cudbg.relfimg.dev0", 7, 0, std::string(100, '\0')}});
  os::Fd to = writer();
  ASSERT_EQ(::write(to.get(), dump.data(), dump.size()), static_cast<ssize_t>(dump.size()));
  to.reset();
  while (pipe_->read() == DumpPipe::State::Writing) continue;
  EXPECT_EQ(pipe_->state(), DumpPipe::State::Nearly);
  pipe_->let_end();
  while (pipe_->read() == DumpPipe::State::Writing) continue;
  EXPECT_EQ(pipe_->state(), DumpPipe::State::Done);
  EXPECT_EQ(pipe_->bytes().size(), dump.size());
}

TEST_F(DumpPipeTest, WhatIsTooLongIsReadAndThrownAway) {
  constexpr std::size_t most = std::size_t{3} << 20;
  open_with(std::make_shared<DumpBudget>(most));
  const std::string text(most + 100'000, 'd');
  std::thread dumping = start_dump(text);
  while (pipe_->read() != DumpPipe::State::Done) std::this_thread::yield();
  dumping.join();
  EXPECT_EQ(pipe_->bytes().size(), most + 64) << "its header is free";
  EXPECT_EQ(pipe_->came_bytes(), text.size());
  EXPECT_TRUE(pipe_->is_cut());
}

/// Many tenants may dump at once, and each writes what it wants.
TEST_F(DumpPipeTest, AllTogetherHaveOneBudget) {
  const auto budget = std::make_shared<DumpBudget>(100'000);
  const std::string text(80'000, 'd');
  const auto read_one = [&] {
    open_with(budget);
    std::thread dumping = start_dump(text);
    while (pipe_->read() != DumpPipe::State::Done) std::this_thread::yield();
    dumping.join();
  };
  read_one();
  EXPECT_FALSE(pipe_->is_cut());
  {
    const DumpPipe first = std::move(*pipe_);
    read_one();
    EXPECT_EQ(pipe_->bytes().size(), 20'128U) << "the headers of both are free";
    EXPECT_TRUE(pipe_->is_cut());
  }
  pipe_->clear();
  read_one();
  EXPECT_FALSE(pipe_->is_cut()) << "what goes, and what is forgotten, gives back what it took";
}

TEST_F(DumpPipeTest, WhoeverBeganToWriteBeforeThereWasAReaderIsRead) {
  const std::string path = directory_->path() + "/2.pipe";
  ASSERT_TRUE(os::make_fifo(path));
  std::thread dumping([&] {
    const os::Fd to(::open(path.c_str(), O_WRONLY | O_CLOEXEC));
    write(to, 10);
  });
  auto pipe = DumpPipe::open(kernel_, path);
  ASSERT_TRUE(pipe);
  while (pipe->read() != DumpPipe::State::Done) std::this_thread::yield();
  dumping.join();
  EXPECT_EQ(pipe->bytes().size(), 10U);
}

TEST_F(DumpPipeTest, SomethingElseOfThatNameIsRefused) {
  const std::string path = directory_->path() + "/file";
  const os::Fd file(::open(path.c_str(), O_WRONLY | O_CREAT | O_CLOEXEC, 0600));
  EXPECT_FALSE(DumpPipe::open(kernel_, path));
}

TEST(DumpBudgetsTest, NoUserTakesTheRoomOfAll) {
  DumpBudgets budgets(1'000);
  const auto alice = budgets.of(1), mallory = budgets.of(2);
  EXPECT_EQ(mallory->take(5'000), 750u);
  EXPECT_EQ(mallory->take(1), 0u);
  EXPECT_EQ(budgets.of(2)->take(1), 0u) << "asked for again, it is the same";
  EXPECT_EQ(alice->take(5'000), 250u) << "all together have no more than all";
  mallory->give_back(750);
  EXPECT_EQ(alice->take(5'000), 500u);
}

}  // namespace
}  // namespace firebreak::park
