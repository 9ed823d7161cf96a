// SPDX-License-Identifier: Apache-2.0
// Against the real kernel: processes that hold real descriptors, here of memory files in the place of
// /dev/nvidia-uvm.
#include "agent/endings/hold/other_holders.h"

#include <fcntl.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <signal.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include <array>
#include <functional>
#include <optional>
#include <thread>

#include "agent/endings/hold/holder.h"
#include "ground/os/looks.h"
#include "ground/os/memory.h"
#include "ground/os/processes.h"
#include "ground/os/real_kernel.h"
#include "ground/os/socket.h"

namespace firebreak::hold {
namespace {

using testing::ElementsAre;
using testing::Field;
using testing::IsEmpty;

constexpr const char* space_name = "other-holders-space";

class SpaceKernel : public os::RealKernel {
 public:
  std::string uvm_link_target() const override { return "/memfd:" + std::string(space_name) + " (deleted)"; }
  std::string rm_link_target() const override { return "/memfd:other-holders-manager (deleted)"; }
  /// Does not let itself be looked at.
  pid_t hidden = 0;
  Result<std::string> read_file(const std::string& path) override {
    if (!path.starts_with(os::proc_folder(hidden) + "/") || !os::may_have_to_wait(path))
      return os::RealKernel::read_file(path);
    return fail(ErrorCode::Timeout, "it does not let itself be looked at");
  }
  Result<os::DescriptorLinks> read_links(const std::string& directory, int from) override {
    if (!directory.starts_with(os::proc_folder(hidden) + "/"))
      return os::RealKernel::read_links(directory, from);
    return fail(ErrorCode::Timeout, "it does not let itself be looked at");
  }
};

/// Two ends that say a byte to each other.
class Line {
 public:
  Line() { EXPECT_EQ(::pipe2(ends_.data(), O_CLOEXEC), 0); }
  ~Line() {
    for (const int end : ends_) ::close(end);
  }
  void say(pid_t word = 1) { EXPECT_EQ(::write(ends_[1], &word, sizeof(word)), ssize_t{sizeof(word)}); }
  pid_t hear() {
    pid_t word = 0;
    EXPECT_EQ(::read(ends_[0], &word, sizeof(word)), ssize_t{sizeof(word)});
    return word;
  }

 private:
  std::array<int, 2> ends_{};
};

/// A process of this test; what it starts is reparented to us, and ends with us.
class Person {
 public:
  /// `life` does not return.
  explicit Person(const std::function<void()>& life) : pid_(::fork()) {
    if (pid_ != 0) return;
    ::prctl(PR_SET_PDEATHSIG, SIGKILL);
    life();
    ::_exit(0);
  }
  ~Person() { end(); }
  pid_t pid() const { return pid_; }
  void end() {
    if (pid_ == 0) return;
    ::kill(pid_, SIGKILL);
    ::waitpid(pid_, nullptr, 0);
    pid_ = 0;
  }

 private:
  pid_t pid_;
};

os::Fd make_space() { return os::create_memory_file(space_name, 4096).value(); }

/// A tenant with an address space, and a child of fork() that does `childhood` with the space it has from it.
class OtherHoldersTest : public testing::Test {
 protected:
  OtherHoldersTest() { ::prctl(PR_SET_CHILD_SUBREAPER, 1); }
  ~OtherHoldersTest() override {
    if (child_ != 0) end_child();
    ::prctl(PR_SET_CHILD_SUBREAPER, 0);
  }
  void begin(const std::function<void(os::Fd&)>& childhood, bool is_duplicated = true) {
    Line born;
    // The three are forks of ours, and of one image.
    parent_.emplace([&] {
      os::Fd space = make_space();
      const pid_t child = ::fork();
      if (child == 0) {
        childhood(space);
        ready_.say();
        for (;;) ::pause();
      }
      born.say(child);
      for (;;) ::pause();
    });
    child_ = born.hear();
    (void)ready_.hear();
    process_ = kernel_.pidfd_open(parent_->pid()).value();
    const Numbers numbers = gpu_descriptors_of(kernel_, parent_->pid()).value();
    EXPECT_FALSE(numbers.empty());
    if (is_duplicated) duplicates_.take(kernel_, process_, numbers);
    late_ = {parent_->pid(), {}, {os::image_of(kernel_, parent_->pid()), {}, {}}};
  }
  /// Runs in the child: its first thread ends, and another one is ready.
  [[noreturn]] void go_on_in_another_thread() {
    static os::RealKernel kernel;
    std::thread([this] {
      while (os::is_alive(kernel.read_file(os::proc_folder(::getpid()) + "/stat").value())) ::usleep(1000);
      ready_.say();
      for (;;) ::pause();
    }).detach();
    ::syscall(SYS_exit, 0);  // ends this thread alone
    ::abort();
  }
  void die() {
    parent_->end();
    looker_.emplace(kernel_, clock_, late_);
  }
  Findings look() { return looker_->look(duplicates_); }
  void close_all() {
    looker_->prepare_to_close(duplicates_);
    for (os::Fd& fd : duplicates_.release(Device::AddressSpace)) kernel_.close(std::move(fd));
  }
  void end_child() {
    ::kill(child_, SIGKILL);
    ::waitpid(child_, nullptr, 0);
    child_ = 0;
  }

  SpaceKernel kernel_;
  FakeClock clock_;
  Line ready_;
  std::optional<Person> parent_;
  pid_t child_ = 0;
  os::Fd process_;
  Duplicates duplicates_;
  Late late_;
  std::optional<OtherHolders> looker_;
};

TEST_F(OtherHoldersTest, AChildThatHasWhatItsParentHadIsSeen) {
  begin([](os::Fd&) {});
  die();
  const Findings findings = look();
  ASSERT_EQ(findings.seen.size(), 1u);
  EXPECT_EQ(findings.seen[0].pid, child_);
  EXPECT_TRUE(findings.seen[0].is_fork);
  EXPECT_EQ(describe(findings), "process " + std::to_string(child_) + " (" + findings.seen[0].name + ")");
  end_child();
  EXPECT_TRUE(look().none());
  close_all();
  EXPECT_TRUE(look().none());
}

TEST_F(OtherHoldersTest, OneThatClosedItIsNone) {
  begin([](os::Fd& space) { space.reset(); });
  die();
  EXPECT_TRUE(look().none());
  close_all();
  EXPECT_TRUE(look().none());
}

// Another opening of the same device is another address space.
TEST_F(OtherHoldersTest, OneWithASpaceOfItsOwnIsNone) {
  begin([](os::Fd& space) { space = make_space(); });
  die();
  EXPECT_TRUE(look().none());
  close_all();
  EXPECT_TRUE(look().none());
}

// The process has more address spaces of its own than one look compares, and behind them the one that is
// looked for.
TEST_F(OtherHoldersTest, OneWithVeryManyIsLookedAtInPartAsLongAsTheLoopWaits) {
  begin([](os::Fd& space) {
    constexpr int more_than_a_look_compares = 300;
    const int last = ::fcntl(space.get(), F_DUPFD_CLOEXEC, 800);
    space.reset();
    static os::Fd own = make_space();
    for (int i = 0; i < more_than_a_look_compares; ++i) ::fcntl(own.get(), F_DUPFD_CLOEXEC, 100);
    EXPECT_GE(last, 800);
  });
  die();
  EXPECT_THAT(look().seen, IsEmpty());
  looker_->take_time();
  EXPECT_THAT(look().seen, ElementsAre(Field(&OtherHolder::pid, child_)));
}

TEST_F(OtherHoldersTest, WhoRunsAnotherProgramIsNoFork) {
  begin([](os::Fd& space) {
    ::fcntl(space.get(), F_SETFD, 0);
    const pid_t other = ::fork();
    if (other == 0) ::execlp("sleep", "sleep", "1000", nullptr);
    space.reset();
  });
  die();
  // Looks until it has become that program.
  Findings findings = look();
  while (findings.seen.size() != 1 || findings.seen[0].name != "sleep") findings = look();
  EXPECT_FALSE(findings.seen[0].is_fork);
  ::kill(findings.seen[0].pid, SIGKILL);
  while (!look().none()) {
  }
}

TEST_F(OtherHoldersTest, AProcessOfATenantIsNoFork) {
  begin([](os::Fd&) {});
  late_.others = {child_};
  die();
  ASSERT_EQ(look().seen.size(), 1u);
  EXPECT_FALSE(look().seen[0].is_fork);
}

TEST_F(OtherHoldersTest, AMappingIsFoundByTheMark) {
  begin([](os::Fd& space) {
    EXPECT_NE(::mmap(nullptr, 4096, PROT_READ, MAP_SHARED, space.get(), 0), MAP_FAILED);
    space.reset();
  });
  die();
  EXPECT_TRUE(look().none()) << "no process has a descriptor";
  close_all();
  const Findings findings = look();
  EXPECT_TRUE(findings.unseen);
  EXPECT_THAT(findings.seen, ElementsAre(Field(&OtherHolder::pid, child_)));
  end_child();
  EXPECT_TRUE(look().none()) << "whoever had it has ended";
}

TEST_F(OtherHoldersTest, ADescriptorOnItsWayIsFoundByTheMark) {
  auto ends = os::socket_pair().value();
  begin([&](os::Fd& space) {
    const std::byte one{1};
    const int number = space.get();
    EXPECT_TRUE(ends.first.send(std::span(&one, 1), std::span(&number, 1), Milliseconds(1000)));
    space.reset();
  });
  end_child();
  die();
  EXPECT_TRUE(look().none());
  close_all();
  EXPECT_EQ(look(), (Findings{{}, true, false}));
  EXPECT_EQ(describe(look()), "somebody whom /proc does not show");
  ends.second = os::Socket(os::Fd());
  Findings now = look();
  while (now.unseen)
    now = look();  // an agent beside us, which looks at all processes, may have it for a moment
  EXPECT_EQ(now, (Findings{{}, false, true})) << "its release may be under way";
  clock_.advance(OtherHolders::settles);
  EXPECT_TRUE(look().none());
}

TEST_F(OtherHoldersTest, NobodyWaitsForEverForWhoIsShownByNobody) {
  auto ends = os::socket_pair().value();
  begin([&](os::Fd& space) {
    const std::byte one{1};
    const int number = space.get();
    EXPECT_TRUE(ends.first.send(std::span(&one, 1), std::span(&number, 1), Milliseconds(1000)));
    space.reset();
  });
  end_child();
  die();
  close_all();
  EXPECT_TRUE(look().unseen);
  clock_.advance(OtherHolders::unseen_longest - Milliseconds(1));
  EXPECT_TRUE(look().unseen);
  clock_.advance(Milliseconds(1));
  EXPECT_FALSE(look().unseen);
}

constexpr uid_t alice = 1001, mallory = 1002;

/// Somebody opens the same file, waits for the byte that is its mark, and gets it when the dead's has gone.
class MarksOfOthers : public OtherHoldersTest {
 protected:
  void SetUp() override {
    if (::geteuid() != 0) GTEST_SKIP() << "only root can be two users";
    begin([](os::Fd& space) { space.reset(); });
    late_.user = alice;
  }
  void lock_as(uid_t user) {
    const os::OpeningMark mark = duplicates_.marks().at(0);
    os::Fd again = os::reopen(duplicates_.spaces().at(0)->descriptor.get()).value();
    Line locked;
    locker_.emplace([&] {
      duplicates_ = {};
      EXPECT_EQ(::setuid(user), 0);
      struct flock byte {};
      byte.l_type = F_WRLCK;
      byte.l_start = static_cast<off_t>(mark);
      byte.l_len = 1;
      EXPECT_EQ(::fcntl(again.get(), F_OFD_SETLKW, &byte), 0);
      locked.say();
      for (;;) ::pause();
    });
    again.reset();
    await_waiter(mark);
    die();
    close_all();
    (void)locked.hear();
  }
  Findings found_by(uid_t user) {
    lock_as(user);
    return look();
  }

 private:
  /// It waits for the lock before the dead's goes.
  void await_waiter(os::OpeningMark mark) {
    while (kernel_.read_file("/proc/locks").value().find(" " + std::to_string(mark)) == std::string::npos ||
           kernel_.read_file("/proc/locks").value().find("->") == std::string::npos)
      std::this_thread::yield();
  }
  std::optional<Person> locker_;
};

TEST_F(MarksOfOthers, ALockOfAnotherUsersHoldsNobodyUp) { EXPECT_FALSE(found_by(mallory).unseen); }

TEST_F(MarksOfOthers, ALockOfTheSameUsersMayBeItsFork) { EXPECT_TRUE(found_by(alice).unseen); }

TEST(ShowsMark, OnlyALockOfThatByteByTheOpening) {
  constexpr os::OpeningMark mark = 281474976710656;
  const auto with = [](const std::string& line) { return "pos:\t0\nflags:\t02\n" + line + "\nino:\t9\n"; };
  EXPECT_TRUE(
      shows_mark(with("lock:\t1: OFDLCK ADVISORY  WRITE -1 00:0e:9 281474976710656 281474976710656"), mark));
  EXPECT_FALSE(
      shows_mark(with("lock:\t1: OFDLCK ADVISORY  WRITE -1 00:0e:9 281474976710656 281474976710657"), mark));
  EXPECT_FALSE(shows_mark(with("lock:\t1: OFDLCK ADVISORY  WRITE -1 00:0e:9 0 EOF"), mark));
  EXPECT_FALSE(
      shows_mark(with("lock:\t1: POSIX  ADVISORY  WRITE 17 00:0e:9 281474976710656 281474976710656"), mark));
  EXPECT_FALSE(shows_mark(with("locked: OFDLCK 281474976710656 281474976710656"), mark));
  EXPECT_FALSE(shows_mark("", mark));
}

TEST_F(OtherHoldersTest, WithoutDuplicatesForksAreKnownByTheirImage) {
  begin([](os::Fd&) {}, false);
  // Ours is the same image; what is not its child is somebody else's.
  late_.others = {::getpid()};
  die();
  EXPECT_THAT(look().seen, IsEmpty()) << "its line begins with a living process of the same image";
  late_.others.clear();
  looker_.emplace(kernel_, clock_, late_);
  const os::Fd ours = make_space();
  EXPECT_THAT(look().seen, ElementsAre(Field(&OtherHolder::pid, child_)));
}

TEST_F(OtherHoldersTest, WhoseImageIsNotKnownHasNoForks) {
  begin([](os::Fd&) {}, false);
  late_.traces.image.clear();
  die();
  EXPECT_TRUE(look().none());
}

// A thread may go on when the first one has ended, which then shows no descriptors.
TEST_F(OtherHoldersTest, AProcessWhoseFirstThreadHasEndedIsSeen) {
  begin([this](os::Fd&) { go_on_in_another_thread(); });
  die();
  const Findings findings = look();
  ASSERT_THAT(findings.seen, ElementsAre(Field(&OtherHolder::pid, child_)));
  EXPECT_TRUE(findings.seen[0].is_fork);
}

TEST_F(OtherHoldersTest, AndWhereItHasItMapped) {
  begin([this](os::Fd& space) {
    EXPECT_NE(::mmap(nullptr, 4096, PROT_READ, MAP_SHARED, space.get(), 0), MAP_FAILED);
    space.reset();
    go_on_in_another_thread();
  });
  die();
  close_all();
  EXPECT_THAT(look().seen, ElementsAre(Field(&OtherHolder::pid, child_)));
}

TEST_F(OtherHoldersTest, AndWithoutDuplicatesItIsKnownByItsImage) {
  begin([this](os::Fd&) { go_on_in_another_thread(); }, false);
  die();
  const os::Fd ours = make_space();
  EXPECT_THAT(look().seen, ElementsAre(Field(&OtherHolder::pid, child_)));
}

/// An agent's traces of a process that has ended since, with its duplicates.
class WithTraces : public OtherHoldersTest {
 protected:
  void forget_duplicates() {
    late_.traces.marks = duplicates_.marks();
    EXPECT_EQ(late_.traces.marks.size(), 1u);
    duplicates_ = {};
    late_.traces.image.clear();  // a fork of nobody
  }
  OtherHolder child() {
    const std::string stat = kernel_.read_file(os::proc_folder(child_) + "/stat").value();
    return {child_, std::string(os::start_time(stat)), std::string(os::program_name(stat)), false};
  }
};

TEST_F(WithTraces, WhoHasAMarkedOpeningIsFoundAndGivesItAgain) {
  begin([](os::Fd&) {});
  forget_duplicates();
  die();
  duplicates_ = looker_->take_found();
  EXPECT_EQ(duplicates_.marks(), late_.traces.marks);
  EXPECT_THAT(look().seen, ElementsAre(Field(&OtherHolder::pid, child_)));
  end_child();
  EXPECT_TRUE(look().none());
  close_all();
  EXPECT_TRUE(look().none());
}

TEST_F(WithTraces, AnotherOpeningOfTheSameFileIsNone) {
  begin([](os::Fd& space) {
    space = os::Fd(::open(("/proc/self/fd/" + std::to_string(space.get())).c_str(), O_RDWR | O_CLOEXEC));
  });
  forget_duplicates();
  late_.traces.others = {child()};
  die();
  EXPECT_TRUE(looker_->take_found().empty());
  EXPECT_EQ(look(), (Findings{{}, false, true})) << "its release may be under way";
  clock_.advance(OtherHolders::settles);
  EXPECT_TRUE(look().none());
}

// Nobody sees the mark from here, since nobody has a descriptor of that file.
TEST_F(WithTraces, WhomAnAgentBeforeHasSeenIsBelievedWhereOnlyAMappingIsLeft) {
  begin([](os::Fd& space) {
    EXPECT_NE(::mmap(nullptr, 4096, PROT_READ, MAP_SHARED, space.get(), 0), MAP_FAILED);
    space.reset();
  });
  forget_duplicates();
  late_.traces.others = {child()};
  die();
  EXPECT_THAT(look().seen, ElementsAre(child()));
  end_child();
  EXPECT_TRUE(look().none());
}

TEST_F(WithTraces, AndWhereNothingCouldBeMarked) {
  begin([](os::Fd&) {});
  forget_duplicates();
  late_.traces.marks.clear();
  late_.traces.others = {child()};
  die();
  EXPECT_THAT(look().seen, ElementsAre(child()));
  // The number is another process's.
  late_.traces.others[0].start_time = "1";
  die();
  EXPECT_TRUE(look().none());
}

TEST_F(OtherHoldersTest, OfOneThatIsNotToBeLookedAtTheMarkTells) {
  begin([](os::Fd&) {});
  kernel_.hidden = child_;
  late_.user = ::getuid();
  die();
  EXPECT_THAT(look().seen, IsEmpty());
  close_all();
  const Findings findings = look();
  EXPECT_TRUE(findings.unseen);
  ASSERT_THAT(findings.seen, ElementsAre(Field(&OtherHolder::pid, child_)));
  EXPECT_FALSE(findings.seen[0].is_fork) << "nobody ends it";
  EXPECT_EQ(findings.seen[0].start_time, "");
  end_child();
  EXPECT_TRUE(look().none());
}

/// Nobody is kept waiting by another user's.
TEST_F(OtherHoldersTest, WithoutAMarkOneOfTheSameUserIsWaitedFor) {
  begin([](os::Fd&) {}, false);
  kernel_.hidden = child_;
  late_.user = ::getuid();
  die();
  const os::Fd ours = make_space();
  EXPECT_THAT(look().seen, ElementsAre(Field(&OtherHolder::pid, child_)));
  late_.user = ::getuid() + 1;
  die();
  EXPECT_THAT(look().seen, IsEmpty());
  late_.user = std::nullopt;
  die();
  EXPECT_THAT(look().seen, IsEmpty());
}

TEST_F(WithTraces, WhoWasSeenBeforeAndIsNotToBeLookedAtIsBelievedWhereNothingIsMarked) {
  begin([](os::Fd&) {});
  forget_duplicates();
  late_.traces.marks.clear();
  late_.traces.others = {child()};
  kernel_.hidden = child_;
  die();
  EXPECT_THAT(look().seen, ElementsAre(Field(&OtherHolder::pid, child_)));
}

class HolderWithOthers : public OtherHoldersTest {
 protected:
  void follow(const HolderOptions& options) {
    HolderCallbacks callbacks;
    callbacks.on_others = [this](pid_t, const Findings& findings) { others_ = findings; };
    callbacks.on_released = [this](const Release& release) { released_ = release; };
    holder_.emplace(*loop_, kernel_, system_clock_, options, std::move(callbacks));
    ASSERT_TRUE(holder_->follow(parent_->pid()));
  }
  bool die_and_let_go() {
    const pid_t pid = parent_->pid();
    parent_->end();
    const bool kept = holder_->keep(pid);
    holder_->let_go(pid);
    return kept;
  }
  template <class Done>
  void run_until(Done done) {
    while (!done()) loop_->run_once(Milliseconds(100));
  }
  void expect_release_with_the_childs_end() {
    EXPECT_TRUE(die_and_let_go());
    run_until([&] { return others_.has_value(); });
    EXPECT_THAT(others_->seen, ElementsAre(Field(&OtherHolder::pid, child_)));
    EXPECT_FALSE(released_);
    EXPECT_FALSE(holder_->held().at(0).others.none());
    end_child();
    run_until([&] { return released_.has_value(); });
    EXPECT_TRUE(holder_->held().empty());
  }

  SystemClock system_clock_;
  std::unique_ptr<os::EventLoop> loop_ = os::EventLoop::create().value();
  std::optional<Holder> holder_;
  std::optional<Findings> others_;
  std::optional<Release> released_;
};

TEST_F(HolderWithOthers, NothingIsReleasedWhileAChildHasIt) {
  begin([](os::Fd&) {}, false);
  follow({});
  expect_release_with_the_childs_end();
}

TEST_F(HolderWithOthers, NothingIsReleasedWhileAChildHasItMapped) {
  begin(
      [](os::Fd& space) {
        EXPECT_NE(::mmap(nullptr, 4096, PROT_READ, MAP_SHARED, space.get(), 0), MAP_FAILED);
        space.reset();
      },
      false);
  follow({});
  expect_release_with_the_childs_end();
}

// The process is known by its image alone then; ours is the same, and has something as well.
TEST_F(HolderWithOthers, NorWhereNothingIsHeld) {
  begin([](os::Fd&) {}, false);
  const os::Fd ours = make_space();
  follow({.takes_duplicates = false});
  expect_release_with_the_childs_end();
}

TEST_F(HolderWithOthers, WhatNobodyElseHasIsReleasedAtOnce) {
  begin([](os::Fd& space) { space.reset(); }, false);
  follow({});
  EXPECT_TRUE(die_and_let_go());
  run_until([&] { return released_.has_value(); });
  EXPECT_FALSE(others_);
}

}  // namespace
}  // namespace firebreak::hold
