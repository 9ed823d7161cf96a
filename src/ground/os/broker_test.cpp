// SPDX-License-Identifier: Apache-2.0
#include "ground/os/broker.h"

#include <fcntl.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <signal.h>

#include <algorithm>
#include <atomic>
#include <cstdlib>
#include <filesystem>
#include <functional>
#include <memory>
#include <sstream>
#include <thread>
#include <vector>

#include "ground/os/descriptors.h"
#include "ground/os/file.h"
#include "ground/os/looks.h"
#include "ground/os/memory.h"
#include "ground/os/processes.h"
#include "ground/os/real_kernel.h"
#include "ground/os/self.h"

namespace firebreak::os {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;

constexpr Nanoseconds long_time = std::chrono::hours(1);
constexpr uid_t some_user = 54'321;

void end(pid_t child, int signal = SIGKILL) {
  RealKernel kernel;
  ::kill(child, signal);
  const Fd pidfd = kernel.pidfd_open(child).value();
  const int number = pidfd.get();
  (void)kernel.poll(std::span(&number, 1), Milliseconds(10'000));
  (void)kernel.try_wait(child);
}

/// One that waits.
class Child {
 public:
  explicit Child(int inherited = -1, uid_t user = 0) {
    SpawnRequest request;
    request.command = {"sleep", "1000"};
    if (user != 0) {
      const std::string its = std::to_string(user);
      request.command.insert(request.command.begin(), {"setpriv", "--reuid", its, "--clear-groups"});
    }
    request.environment = {{"FIREBREAK_TEST_BROKER", "seen"}};
    if (inherited >= 0) request.inherited = {{inherited, 77}};
    RealKernel kernel;
    pid_ = kernel.spawn(request).value();
    // The process shows its user only when it has become that user.
    while (user != 0 && user_in(kernel.read_file(proc_folder(pid_) + "/status").value_or("")) != user)
      std::this_thread::yield();
  }
  Child(const Child&) = delete;
  Child& operator=(const Child&) = delete;
  ~Child() { end(pid_); }
  pid_t pid() const { return pid_; }
  std::string environment() const { return proc_folder(pid_) + "/environ"; }

 private:
  pid_t pid_ = 0;
};

/// One that does not let itself be looked at, until this goes (test_hidden.cpp).
class Hidden {
 public:
  explicit Hidden(const std::string& how, uid_t user = 0) {
    auto pipe = make_pipe().value();
    SpawnRequest request;
    request.command = {FIREBREAK_TEST_HIDDEN, how, std::to_string(user)};
    request.standard_output = pipe.writing.get();
    RealKernel kernel;
    server_ = kernel.spawn(request).value();
    pipe.writing.reset();
    std::string line;
    std::byte letter{};
    while (kernel.read(pipe.reading, std::span(&letter, 1)).value_or(0) == 1 && letter != std::byte{'\n'})
      line += static_cast<char>(letter);
    std::istringstream(line) >> pid_ >> address_;
  }
  Hidden(const Hidden&) = delete;
  Hidden& operator=(const Hidden&) = delete;
  ~Hidden() { end(server_, SIGTERM); }
  /// 0: this machine does not let it.
  pid_t pid() const { return pid_; }
  std::uint64_t address() const { return address_; }
  std::string folder() const { return proc_folder(pid_); }
  std::string environment() const { return folder() + "/environ"; }

 private:
  pid_t server_ = 0;
  pid_t pid_ = 0;
  std::uint64_t address_ = 0;
};

struct BrokerTest : testing::Test {
  std::shared_ptr<Broker> with(Milliseconds deadline, Nanoseconds pause) {
    BrokerOptions options;
    keeper = RightsKeeper::start({FIREBREAK_TEST_LOOKS}, Milliseconds(60'000)).value();
    options.keeper = keeper;
    options.deadline = deadline;
    options.pause = pause;
    options.patience = patience;
    options.tell = [this](const std::string& line) { told.push_back(line); };
    auto broker = std::make_shared<Broker>(options);
    EXPECT_TRUE(broker->start());
    return broker;
  }
  /// The time in which no look of an ordinary process is late, on the busiest machine.
  std::shared_ptr<Broker> patient() { return with(Milliseconds(60'000), long_time); }

  /// The next helper may take its time to come up; none is to be given up for that.
  std::string read_in_time(Broker& broker, const std::string& path) {
    auto seen = broker.read_file(path);
    while (!seen && told.size() == 1U) seen = broker.read_file(path);
    return seen.value_or("");
  }

  Nanoseconds patience = long_time;
  std::shared_ptr<RightsKeeper> keeper;
  std::vector<std::string> told;
};

/// Internal: there was no error.
template <class T>
ErrorCode code_of(const Result<T>& result) {
  return result ? ErrorCode::Internal : result.error().code;
}

TEST_F(BrokerTest, LooksAreAnsweredAsIfDoneHere) {
  const auto broker = patient();
  const Child child;
  EXPECT_THAT(broker->read_file(child.environment()).value(), HasSubstr("FIREBREAK_TEST_BROKER=seen"));
  EXPECT_EQ(broker->read_file("/proc/4194305/stat").error().code, ErrorCode::NotFound);
  EXPECT_EQ(broker->read_file(proc_folder(child.pid()) + "/limits").value(),
            read_small_file(proc_folder(child.pid()) + "/limits").value());
  const std::string here = "some bytes of ours";
  EXPECT_EQ(broker
                ->read_memory("/proc/" + std::to_string(own_pid()) + "/mem",
                              reinterpret_cast<std::uint64_t>(here.data()), here.size())
                .value(),
            here);
  EXPECT_THAT(broker->not_answered(), IsEmpty());
  EXPECT_THAT(told, IsEmpty());
}

TEST_F(BrokerTest, WhatIsLongComesWhole) {
  std::string content;
  SpawnRequest request;
  request.command = {"sleep", "1000"};
  for (char name = 'a'; name < 'j'; ++name) {
    const std::string value(120'001, name);
    request.environment.emplace_back(std::string("FIREBREAK_TEST_") + name, value);
    content += std::string("FIREBREAK_TEST_") + name + "=" + value + '\0';
  }
  const pid_t child = RealKernel().spawn(request).value();
  const auto read = patient()->read_file(proc_folder(child) + "/environ");
  end(child);
  EXPECT_TRUE(read.value().ends_with(content));
}

/// A helper may read more than the asker, so it reads nothing but what is named.
TEST_F(BrokerTest, NothingIsReadButWhatIsNamed) {
  const auto broker = patient();
  const Child child;
  const std::string folder = proc_folder(child.pid());
  for (const std::string& path :
       {folder + "/root/etc/passwd", folder + "/exe", folder + "/cwd/x", folder + "/mem",
        folder + "/../self/environ", folder + "/fd/0", folder + "/task/environ", std::string("/etc/passwd"),
        std::string("/proc/self/environ")})
    EXPECT_EQ(code_of(broker->read_file(path)), ErrorCode::InvalidArgument) << path;
  EXPECT_EQ(code_of(broker->read_memory(folder + "/environ", 0, 16)), ErrorCode::InvalidArgument);
  EXPECT_EQ(code_of(broker->read_links(folder + "/map_files", 0)), ErrorCode::InvalidArgument);
  EXPECT_EQ(code_of(broker->find(folder + "/exe")), ErrorCode::InvalidArgument);
  EXPECT_EQ(code_of(broker->find("/dev/null")), ErrorCode::InvalidArgument);
}

/// The memory of a process that has nothing to do with us, its sockets, its terminal.
TEST_F(BrokerTest, GivesNothingThatIsNotOnItsList) {
  const auto broker = patient();
  const Fd file = create_memory_file("other", 4096).value();
  const Child child(file.get());
  const Fd pidfd = RealKernel().pidfd_open(child.pid()).value();
  const auto refused = [&](const std::string& link) {
    return broker->duplicate(pidfd, 77, link).error().code == ErrorCode::PermissionDenied;
  };
  for (const char* link : {"/memfd:other (deleted)", "/memfd:", "/memfd:content (deleted)", "socket:[1]",
                           "/dev/zero", "/dev/../dev/null", ""})
    EXPECT_TRUE(refused(link)) << link;
  EXPECT_EQ(broker->find(proc_folder(child.pid()) + "/fd/77").error().code, ErrorCode::PermissionDenied);
}

TEST_F(BrokerTest, GivesDuplicatesAndKeepsNone) {
  const auto broker = patient();
  const Fd file = memory_file_with("shared").value();
  const Child child(file.get());
  const Fd pidfd = RealKernel().pidfd_open(child.pid()).value();
  const auto taken = broker->duplicate(pidfd, 77, "/memfd:content (deleted)");
  if (!taken && taken.error().code == ErrorCode::PermissionDenied) GTEST_SKIP() << to_string(taken.error());
  ASSERT_TRUE(taken) << to_string(taken.error());
  EXPECT_EQ(content_of(taken->get()).value(), "shared");
  EXPECT_TRUE(broker->is_same_file(child.pid(), 77, own_pid(), taken->get()).value());
  EXPECT_FALSE(broker->is_same_file(child.pid(), 0, own_pid(), taken->get()).value());
  EXPECT_EQ(broker->duplicate(pidfd, 77, "/dev/null").error().code, ErrorCode::NotFound);
  RealKernel kernel;
  for (const pid_t each : children_of(kernel, keeper->pid())) {
    for (int number = 3; number < 20; ++number)
      EXPECT_FALSE(broker->is_same_file(each, number, own_pid(), taken->get()).value_or(false)) << number;
  }
}

TEST_F(BrokerTest, OneThatIsKilledIsReplaced) {
  const auto broker = patient();
  RealKernel kernel;
  for (const pid_t each : children_of(kernel, keeper->pid())) ::kill(each, SIGKILL);
  const Child child;
  EXPECT_TRUE(broker->read_file(child.environment()));
  EXPECT_THAT(told, IsEmpty());
}

TEST_F(BrokerTest, WhoKeepsAHelperIsNotLookedAtAgainAndOthersAre) {
  const Hidden hidden("exec");
  if (hidden.pid() == 0) GTEST_SKIP() << "nobody may mount here";
  const Child other;
  const auto broker = with(Milliseconds(500), long_time);
  EXPECT_EQ(code_of(broker->read_file(hidden.environment())), ErrorCode::Timeout);
  EXPECT_EQ(told.size(), 1U);
  EXPECT_EQ(code_of(broker->read_file(hidden.environment())), ErrorCode::Timeout);
  EXPECT_EQ(told.size(), 1U) << "no helper was given up for it a second time";
  EXPECT_THAT(broker->not_answered(), ElementsAre(hidden.pid()));
  EXPECT_THAT(read_in_time(*broker, other.environment()), HasSubstr("FIREBREAK_TEST_BROKER=seen"));
}

/// Looks that nothing answers for would hang here.
TEST_F(BrokerTest, NoKindOfLookIsWaitedFor) {
  const Fd file = create_memory_file("x", 0).value();
  const auto looks = std::vector<std::function<ErrorCode(Broker&, const Hidden&)>>{
      [](Broker& broker, const Hidden& hidden) {
        return code_of(broker.read_file(hidden.folder() + "/maps"));
      },
      [](Broker& broker, const Hidden& hidden) {
        return code_of(broker.read_file(hidden.folder() + "/stat"));
      },
      [](Broker& broker, const Hidden& hidden) {
        return code_of(broker.read_links(hidden.folder() + "/fd", 0));
      },
      [](Broker& broker, const Hidden& hidden) { return code_of(broker.find(hidden.folder() + "/fd/77")); },
      [](Broker& broker, const Hidden& hidden) {
        return code_of(broker.read_memory(hidden.folder() + "/mem", hidden.address(), 16));
      },
      [](Broker& broker, const Hidden& hidden) {
        const Fd pidfd = RealKernel().pidfd_open(hidden.pid()).value();
        return code_of(broker.duplicate(pidfd, 77, "/memfd:nvidia-uvm (deleted)"));
      },
      [&file](Broker& broker, const Hidden& hidden) {
        return code_of(broker.is_same_file(hidden.pid(), 77, own_pid(), file.get()));
      }};
  for (std::size_t i = 0; i < looks.size(); ++i) {
    const Hidden hidden("exec");
    if (hidden.pid() == 0) GTEST_SKIP() << "nobody may mount here";
    EXPECT_EQ(looks[i](*with(Milliseconds(500), long_time), hidden), ErrorCode::Timeout) << i;
  }
}

TEST_F(BrokerTest, NoLookIsWaitedForWhereAThreadHoldsTheMappings) {
  const auto looks = std::vector<std::string>{"environ", "cmdline"};
  for (const std::string& look : looks) {
    const Hidden hidden("lock");
    if (hidden.pid() == 0) GTEST_SKIP() << "nobody may mount here";
    EXPECT_EQ(code_of(with(Milliseconds(500), long_time)->read_file(hidden.folder() + "/" + look)),
              ErrorCode::Timeout)
        << look;
  }
}

/// Reads without a helper would hang here if they had to wait.
TEST_F(BrokerTest, WhatIsReadHereNeedsNoAnswer) {
  for (const std::string how : {"exec", "lock", "memory"}) {
    const Hidden hidden(how);
    if (hidden.pid() == 0) GTEST_SKIP() << "nobody may mount here";
    RealKernel kernel;
    for (const std::string file : {"comm", "status"}) {
      const std::string path = hidden.folder() + "/" + file;
      EXPECT_FALSE(may_have_to_wait(path));
      EXPECT_TRUE(read_small_file(path)) << how << " " << file;
    }
    EXPECT_EQ(parent_of(kernel, hidden.pid()) == 0, false);
    EXPECT_TRUE(kernel.list_directory(hidden.folder() + "/fd")) << how;
    EXPECT_TRUE(kernel.list_directory(hidden.folder() + "/task")) << how;
    (void)count_descriptors(kernel, hidden.pid());
    const Fd pidfd = kernel.pidfd_open(hidden.pid()).value();
    EXPECT_TRUE(kernel.send_signal(pidfd, 0)) << how;
    EXPECT_EQ(process_behind(pidfd), hidden.pid()) << how;
  }
}

TEST_F(BrokerTest, WhatMayHaveToWaitIsKnownByItsPath) {
  for (const char* path :
       {"/proc/7/stat", "/proc/7/task/8/stat", "/proc/7/fd/3", "/proc/7/exe", "/proc/7/cwd"})
    EXPECT_TRUE(may_have_to_wait(path)) << path;
  for (const char* path : {"/proc/self/stat", "/proc/driver/nvidia/version", "/proc/7", "/dev/nvidia-uvm",
                           "/proc/7/comm", "/proc/7/task/8/status", "/x/proc/7/stat"})
    EXPECT_FALSE(may_have_to_wait(path)) << path;
}

TEST_F(BrokerTest, AKernelHasItsLooksDoneByIt) {
  const Hidden hidden("exec");
  if (hidden.pid() == 0) GTEST_SKIP() << "nobody may mount here";
  RealKernel kernel;
  kernel.look_by(with(Milliseconds(500), long_time));
  EXPECT_EQ(code_of(kernel.read_links(hidden.folder() + "/fd", 0)), ErrorCode::Timeout);
  EXPECT_EQ(code_of(kernel.open(hidden.folder() + "/fd/77", O_PATH)), ErrorCode::Timeout);
  EXPECT_EQ(code_of(kernel.read_file(hidden.folder() + "/stat")), ErrorCode::Timeout);
  EXPECT_EQ(code_of(kernel.read_memory_file(hidden.environment())), ErrorCode::Timeout);
  EXPECT_EQ(code_of(kernel.read_memory(hidden.folder() + "/mem", hidden.address(), 16)), ErrorCode::Timeout);
  const Fd pidfd = kernel.pidfd_open(hidden.pid()).value();
  EXPECT_EQ(code_of(kernel.pidfd_getfd(pidfd, 77, "/memfd:x")), ErrorCode::Timeout);
  EXPECT_EQ(code_of(kernel.is_same_file(hidden.pid(), 77, pidfd)), ErrorCode::Timeout);
  const std::vector<FilePair> files(3, {77, &pidfd});
  for (const auto& same : kernel.are_same_files(hidden.pid(), files))
    EXPECT_EQ(code_of(same), ErrorCode::Timeout);
  const std::vector<DescriptorLink> wanted(3, {77, "/memfd:x"});
  for (const auto& found : kernel.pidfd_getfds(pidfd, wanted)) EXPECT_EQ(code_of(found), ErrorCode::Timeout);
  EXPECT_EQ(told.size(), 1U);
  EXPECT_EQ(code_of(regular_file_at(kernel, hidden.folder() + "/fd/2")), ErrorCode::Timeout);
  EXPECT_EQ(code_of(open_what_it_is_called(kernel, hidden.folder() + "/fd/77", "/memfd:x")),
            ErrorCode::Timeout);
  int from = 0;
  const auto nothing = [](int, const std::string&) { return true; };
  EXPECT_EQ(code_of(visit_some_descriptors(kernel, hidden.pid(), from, nothing)), ErrorCode::Timeout);
  EXPECT_EQ(visit_descriptors(kernel, hidden.pid(), nothing).error().code, ErrorCode::Timeout);
}

TEST_F(BrokerTest, DuplicatesManyInTheirOrderAndSaysOfEachWhyNot) {
  const auto broker = patient();
  const Fd file = memory_file_with("shared").value();
  const Child child(file.get());
  const Fd pidfd = RealKernel().pidfd_open(child.pid()).value();
  const std::string listed = "/memfd:content (deleted)";
  std::vector<DescriptorLink> wanted;
  for (std::size_t i = 0; i < Broker::most_in_a_question + 3; ++i) wanted.push_back({77, listed});
  wanted[1] = {999, listed};
  wanted[2] = {77, "/dev/zero"};
  wanted[Broker::most_in_a_question] = {1, listed};
  const auto found = broker->duplicate_all(pidfd, wanted);
  ASSERT_EQ(found.size(), wanted.size());
  EXPECT_EQ(code_of(found[1]), ErrorCode::NotFound);
  EXPECT_EQ(code_of(found[2]), ErrorCode::PermissionDenied) << "it is not listed";
  EXPECT_EQ(code_of(found[Broker::most_in_a_question]), ErrorCode::NotFound);
  std::size_t count = 0;
  for (const auto& each : found) {
    if (!each) continue;
    EXPECT_EQ(identity_of(each->get()).value(), identity_of(file.get()).value());
    ++count;
  }
  EXPECT_EQ(count, wanted.size() - 3);
}

TEST_F(BrokerTest, ComparesManyInTheirOrderAndSaysOfEachWhyNot) {
  const auto broker = patient();
  const Fd file = memory_file_with("shared").value(), another = memory_file_with("shared").value();
  const Child child(file.get());
  std::vector<NumberPair> numbers(Broker::most_in_a_question + 3, {77, file.get()});
  numbers[1] = {999, file.get()};
  numbers[2] = {77, another.get()};
  numbers[Broker::most_in_a_question] = {77, another.get()};
  const auto same = broker->are_same_files(child.pid(), own_pid(), numbers);
  ASSERT_EQ(same.size(), numbers.size());
  for (std::size_t i = 0; i < same.size(); ++i) {
    if (i == 1) continue;
    EXPECT_EQ(same[i].value(), numbers[i].other == file.get()) << i;
  }
  ASSERT_FALSE(same[1]);
  EXPECT_THAT(same[1].error().message, HasSubstr("compare descriptors"));
  EXPECT_THAT(broker->are_same_files(child.pid(), own_pid(), {}), IsEmpty());
}

TEST_F(BrokerTest, ShowsWhatDescriptorsAre) {
  const auto broker = patient();
  const Fd file = memory_file_with("shared").value();
  const Child child(file.get());
  const std::string folder = proc_folder(child.pid()) + "/fd";
  const auto links = broker->read_links(folder, 0).value();
  const auto found = std::ranges::find(links.all, 77, &DescriptorLink::number);
  ASSERT_NE(found, links.all.end());
  EXPECT_EQ(found->target, "/memfd:content (deleted)");
  EXPECT_EQ(links.next, 0);
  EXPECT_FALSE(links.has_missed_any);
  EXPECT_EQ(broker->read_links(folder, 77).value().all.size(), 1U);
  EXPECT_EQ(broker->read_links("/proc/4194305/fd", 0).error().code, ErrorCode::NotFound);
  const Fd same = broker->find(folder + "/77").value();
  EXPECT_EQ(identity_of(same.get()).value(), identity_of(file.get()).value());
  EXPECT_EQ(broker->find(folder + "/999").error().code, ErrorCode::NotFound);
}

TEST_F(BrokerTest, OfVeryManyDescriptorsAsManyAreShownAsFitInALook) {
  const auto broker = patient();
  std::vector<Fd> many;
  while (many.size() < most_descriptors_in_a_look + 100) {
    many.emplace_back(::fcntl(many.empty() ? 0 : many.front().get(), F_DUPFD_CLOEXEC, 3));
    if (!many.back()) GTEST_SKIP() << "nobody may have so many";
  }
  const std::string folder = proc_folder(own_pid()) + "/fd";
  const auto first = broker->read_links(folder, 0).value();
  EXPECT_GE(first.all.size(), fewest_descriptors_in_a_look);
  EXPECT_LE(first.all.size(), most_descriptors_in_a_look);
  ASSERT_NE(first.next, 0);
  std::size_t rest = 0;
  int from = first.next;
  for (int parts = 0; from != 0 && parts < 100; ++parts) {
    const auto part = broker->read_links(folder, from).value();
    EXPECT_EQ(part.all.front().number, from);
    rest += part.all.size();
    from = part.next;
  }
  EXPECT_EQ(from, 0) << "and it ends";
  EXPECT_GE(first.all.size() + rest, most_descriptors_in_a_look + 100);
}

/// A look may take so long, and sees so many descriptors then.
class TimedLooks : public testing::Test {
 protected:
  TimedLooks() {
    while (many_.size() < 2 * most_descriptors_in_a_look)
      many_.emplace_back(::fcntl(many_.empty() ? 0 : many_.front().get(), F_DUPFD_CLOEXEC, 3));
  }
  void SetUp() override {
    if (!many_.back()) GTEST_SKIP() << "nobody may have so many";
  }
  std::size_t seen_in(Nanoseconds longest) const {
    return direct_looks(longest)->read_links(proc_folder(own_pid()) + "/fd", 0).value().all.size();
  }

 private:
  std::vector<Fd> many_;
};

TEST_F(TimedLooks, ALookWhoseTimeIsOverSeesTheFewest) {
  EXPECT_EQ(seen_in({}), fewest_descriptors_in_a_look);
}

TEST_F(TimedLooks, HoweverMuchTimeThereIsNoneSeesMoreThanTheMost) {
  EXPECT_EQ(seen_in(std::chrono::hours(1)), most_descriptors_in_a_look);
}

/// A name of one's own choice: neither a line's end in it nor its length makes more of it than it is.
TEST_F(BrokerTest, WhatADescriptorIsCalledIsOneText) {
  const auto folder = TemporaryDirectory::create().value();
  std::string deep = folder.path() + "/1 called\n2 otherwise";
  std::filesystem::create_directory(deep);
  for (int parts = 0; parts < 2; ++parts) {
    deep += "/" + std::string(250, 'x');
    std::filesystem::create_directory(deep);
  }
  const Fd file(::open(deep.c_str(), O_RDONLY | O_CLOEXEC));
  const Child child(file.get());
  const auto links = patient()->read_links(proc_folder(child.pid()) + "/fd", 77).value();
  ASSERT_EQ(links.all.size(), 1U);
  EXPECT_EQ(links.all.front().target, deep.substr(0, most_link_bytes));
}

TEST_F(BrokerTest, WhereFourOfAUserAreKeptNoOtherOfThatUserIsLookedAt) {
  std::vector<std::unique_ptr<Hidden>> hidden;
  for (std::size_t i = 0; i < Broker::most_abandoned_for_one_user; ++i)
    hidden.push_back(std::make_unique<Hidden>("exec", some_user));
  if (hidden.front()->pid() == 0) GTEST_SKIP() << "nobody may mount here";
  const auto broker = with(Milliseconds(500), long_time);
  for (std::size_t i = 0; i < hidden.size(); ++i) {
    while (broker->not_answered().size() == i)
      ASSERT_EQ(code_of(broker->read_file(hidden[i]->environment())), ErrorCode::Timeout);
  }
  const Child its(-1, some_user);
  const auto refused = broker->read_file(its.environment());
  ASSERT_FALSE(refused);
  EXPECT_THAT(refused.error().message, HasSubstr("none of that user's is asked about"));
  const Child other;
  std::string seen = broker->read_file(other.environment()).value_or("");
  while (seen.empty() && told.size() == hidden.size())
    seen = broker->read_file(other.environment()).value_or("");
  EXPECT_THAT(seen, HasSubstr("FIREBREAK_TEST_BROKER=seen"));
}

TEST_F(BrokerTest, WhereEightAreKeptNobodyIsLookedAt) {
  std::vector<std::unique_ptr<Hidden>> hidden;
  for (std::size_t i = 0; i < Broker::most_abandoned; ++i)
    hidden.push_back(std::make_unique<Hidden>("exec", some_user + static_cast<uid_t>(i % 2)));
  if (hidden.front()->pid() == 0) GTEST_SKIP() << "nobody may mount here";
  const auto broker = with(Milliseconds(500), long_time);
  for (std::size_t i = 0; i < hidden.size(); ++i) {
    while (broker->not_answered().size() == i)
      ASSERT_EQ(code_of(broker->read_file(hidden[i]->environment())), ErrorCode::Timeout);
  }
  const Child other;
  const auto refused = broker->read_file(other.environment());
  ASSERT_FALSE(refused);
  EXPECT_THAT(refused.error().message, HasSubstr("none is asked about"));
}

TEST_F(BrokerTest, WherePatienceIsUsedUpNobodyIsLookedAt) {
  const Hidden hidden("exec");
  if (hidden.pid() == 0) GTEST_SKIP() << "nobody may mount here";
  patience = Milliseconds(520);
  const auto broker = with(Milliseconds(10'000), long_time);
  EXPECT_EQ(code_of(broker->read_file(hidden.environment())), ErrorCode::Timeout);
  const Child other;
  const auto refused = broker->read_file(other.environment());
  ASSERT_FALSE(refused);
  EXPECT_THAT(refused.error().message, HasSubstr("too many processes"));
}

TEST_F(BrokerTest, AHelperThatCanBeKilledIsAndThenItsProcessIsLookedAtAgain) {
  const Hidden hidden("exec");
  if (hidden.pid() == 0) GTEST_SKIP() << "nobody may mount here";
  const auto broker = with(Milliseconds(500), Nanoseconds(0));
  EXPECT_EQ(code_of(broker->read_file(hidden.environment())), ErrorCode::Timeout);
  while (!broker->not_answered().empty()) std::this_thread::yield();
  while (told.size() == 1U) EXPECT_EQ(code_of(broker->read_file(hidden.environment())), ErrorCode::Timeout);
}

TEST_F(BrokerTest, AHelperThatCannotBeKilledIsNotWaitedFor) {
  auto hidden = std::make_unique<Hidden>("memory");
  if (hidden->pid() == 0) GTEST_SKIP() << "nobody may mount here";
  const Child other;
  const auto broker = with(Milliseconds(500), Nanoseconds(0));
  const auto read = broker->read_memory(hidden->folder() + "/mem", hidden->address(), 16);
  EXPECT_EQ(code_of(read), ErrorCode::Timeout);
  EXPECT_THAT(read_in_time(*broker, other.environment()), HasSubstr("FIREBREAK_TEST_BROKER=seen"));
  EXPECT_THAT(broker->not_answered(), ElementsAre(hidden->pid())) << "it has not ended";
  hidden.reset();
  while (!broker->not_answered().empty()) std::this_thread::yield();
  EXPECT_EQ(told.size(), 1U);
}

/// One whose helper stands still until it is let go on, and who is told by a pipe that something is urgent.
class PutOff : public BrokerTest {
 protected:
  PutOff() : pipe_(make_pipe().value()) {}
  ~PutOff() override {
    if (keeper) let_helpers(SIGCONT);  // none where the test was skipped
  }
  void begin(Milliseconds deadline) {
    broker_ = with(deadline, long_time);
    broker_->put_off_for([this] { return can_be_put_off_ ? pipe_.reading.get() : -1; });
    EXPECT_TRUE(broker_->read_file(first_.environment()));  // a process that is there
  }
  void let_helpers(int signal) {
    RealKernel kernel;
    for (const pid_t each : children_of(kernel, keeper->pid())) ::kill(each, signal);
  }
  void raise() { EXPECT_EQ(::write(pipe_.writing.get(), "x", 1), 1); }
  void lower() {
    char word = 0;
    EXPECT_EQ(::read(pipe_.reading.get(), &word, 1), 1);
  }
  template <class Ask>
  auto ask_while_it_stands_still(const Ask& ask) {
    let_helpers(SIGSTOP);
    std::thread raiser([this] {
      std::this_thread::sleep_for(Milliseconds(20));
      raise();
    });
    auto answer = ask();
    raiser.join();
    lower();
    return answer;
  }
  void expect_put_off(const Error& why) const {
    EXPECT_EQ(why.code, ErrorCode::Timeout);
    EXPECT_THAT(why.message, HasSubstr("more urgent"));
    EXPECT_THAT(told, IsEmpty()) << "nobody is to blame";
    EXPECT_THAT(broker_->not_answered(), IsEmpty());
  }

  Pipe pipe_;
  std::atomic<bool> can_be_put_off_{true};
  const Child first_;
  std::shared_ptr<Broker> broker_;
};

TEST_F(PutOff, WhatIsUrgentIsNotKeptWaitingAndTheNextAnswerIsItsOwn) {
  begin(Milliseconds(60'000));
  const Child second;
  const auto late = ask_while_it_stands_still([&] { return broker_->read_file(first_.environment()); });
  ASSERT_FALSE(late);
  expect_put_off(late.error());
  let_helpers(SIGCONT);
  EXPECT_EQ(broker_->read_file(proc_folder(second.pid()) + "/stat").value().substr(0, 4),
            std::to_string(second.pid()).substr(0, 4));
}

TEST_F(PutOff, WhereItIsUrgentBeforeNothingIsAsked) {
  begin(Milliseconds(60'000));
  raise();
  const auto answer = broker_->read_file(first_.environment());
  lower();
  ASSERT_FALSE(answer);
  expect_put_off(answer.error());
  EXPECT_TRUE(broker_->read_file(first_.environment()));
}

TEST_F(PutOff, WhatCannotBePutOffIsAnswered) {
  begin(Milliseconds(60'000));
  raise();
  can_be_put_off_ = false;
  EXPECT_TRUE(broker_->read_file(first_.environment()));
  lower();
}

/// A descriptor that comes may be the last of what a process had.
TEST_F(PutOff, WhoIsAskedForDescriptorsIsWaitedFor) {
  begin(Milliseconds(60'000));
  const Fd file = memory_file_with("shared").value();
  const Child child(file.get());
  const Fd pidfd = RealKernel().pidfd_open(child.pid()).value();
  let_helpers(SIGSTOP);
  std::thread raiser([this] {
    std::this_thread::sleep_for(Milliseconds(20));
    raise();
    std::this_thread::sleep_for(Milliseconds(20));
    let_helpers(SIGCONT);
  });
  const auto found = broker_->duplicate(pidfd, 77, "/memfd:content (deleted)");
  raiser.join();
  lower();
  ASSERT_TRUE(found) << to_string(found.error());
  EXPECT_EQ(found->closer(), nullptr) << "who has it may want to wait for its close()";
}

/// An unprivileged user may have means to make the kernel log something all the time.
TEST_F(PutOff, WhereItIsUrgentAllTheTimeOneOfManyIsAnsweredAllTheSame) {
  begin(Milliseconds(60'000));
  raise();
  int answered = 0;
  for (int i = 0; i < 3 * (Broker::most_put_offs_in_a_row + 1); ++i)
    answered += broker_->read_file(first_.environment()) ? 1 : 0;
  lower();
  EXPECT_EQ(answered, 3);
}

/// The process that the next look asks about has done nothing.
TEST_F(PutOff, WhoKeepsTheHelperFromTheNextIsGivenUpInItsPlace) {
  const Hidden hidden("exec");
  if (hidden.pid() == 0) GTEST_SKIP() << "nobody may mount here";
  begin(Milliseconds(3'000));
  const auto late = ask_while_it_stands_still([&] { return broker_->read_file(hidden.environment()); });
  ASSERT_FALSE(late);
  expect_put_off(late.error());
  let_helpers(SIGCONT);
  const Child other;
  EXPECT_THAT(broker_->read_file(other.environment()).value_or(""), HasSubstr("FIREBREAK_TEST_BROKER=seen"));
  EXPECT_THAT(broker_->not_answered(), ElementsAre(hidden.pid()));
}

/// Looks of other threads are held up by their own processes.
TEST_F(PutOff, WhoWaitsForSomebodyElsesLookIsNotKeptWaiting) {
  begin(Milliseconds(60'000));
  let_helpers(SIGSTOP);
  can_be_put_off_ = false;
  std::thread other([&] { EXPECT_TRUE(broker_->read_file(first_.environment())); });
  // The asker has asked: the helper's socket has its question.
  std::this_thread::sleep_for(Milliseconds(50));
  can_be_put_off_ = true;
  const auto answer = ask_while_it_stands_still([&] { return broker_->read_file(first_.environment()); });
  let_helpers(SIGCONT);
  other.join();
  ASSERT_FALSE(answer);
  expect_put_off(answer.error());
}

}  // namespace
}  // namespace firebreak::os
