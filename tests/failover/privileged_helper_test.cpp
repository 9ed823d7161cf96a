// SPDX-License-Identifier: Apache-2.0
/// The process that stays root's, spoken to as an agent would that somebody has taken over.
#include <fcntl.h>
#include <gmock/gmock.h>
#include <signal.h>
#include <sys/stat.h>
#include <unistd.h>

#include <filesystem>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "agent/root/privileged_helper.h"
#include "ground/os/descriptors.h"
#include "ground/os/event_loop.h"
#include "ground/os/file.h"
#include "ground/os/memory.h"
#include "ground/os/processes.h"
#include "ground/os/real_kernel.h"
#include "tests/demo/firebreak_program.h"

namespace firebreak::tests {
namespace {

constexpr Milliseconds long_enough{60'000};
constexpr uid_t agents_uid = 65531;
constexpr const char* dumps = "d/core-dumps";

std::span<const std::byte> bytes_of(std::string_view text) { return std::as_bytes(std::span(text)); }

class HelperOfRoots : public testing::Test {
 protected:
  void SetUp() override {
    if (::geteuid() != 0) GTEST_SKIP() << "only root stays root";
    ASSERT_TRUE(os::make_directories(sandbox_.file("d")));
    ASSERT_TRUE(os::share_folder(sandbox_.file("d"), agents_uid));
    ASSERT_TRUE(os::make_directories(sandbox_.file(dumps)));
    ASSERT_EQ(::chown(sandbox_.file(dumps).c_str(), agents_uid, agents_uid), 0);
    auto ends = os::socket_pair().value();
    os::SpawnRequest request;
    request.command = {std::string(FIREBREAK_PROGRAMS) + "/firebreakd",
                       "--user",
                       std::to_string(agents_uid),
                       "--directory",
                       sandbox_.file("d"),
                       "--privileged-helper"};
    request.environment = sandbox_.environment();
    const auto lock = os::FileLock::take(sandbox_.file("d/agent.lock")).value();
    request.inherited = {{ends.second.fd().get(), os::HelperProcess::socket_descriptor},
                         {lock.fd().get(), os::HelperProcess::socket_descriptor + 1}};
    pid_ = os::spawn_process(request).value();
    process_ = kernel_.pidfd_open(pid_).value();
    socket_.emplace(std::move(ends.first));
    ASSERT_TRUE(socket_->receive(long_enough));
  }
  void TearDown() override {
    if (!socket_) return;
    (void)ask("control a 5000 quit");
    socket_.reset();
    const int number = process_.get();
    EXPECT_FALSE(os::poll_readable(std::span(&number, 1), long_enough).value().empty());
    (void)kernel_.try_wait(pid_);
  }
  void say(std::string_view text, std::vector<int> descriptors) {
    EXPECT_TRUE(socket_->send(bytes_of(text), descriptors, long_enough));
  }
  /// Its answer, with the code of a refusal.
  std::string ask(const std::string& question, std::vector<int> attached = {}) {
    auto ends = os::socket_pair().value();
    attached.insert(attached.begin(), ends.second.fd().get());
    say(question, attached);
    (void)ends.second.release();
    auto said = ends.first.receive(long_enough);
    if (!said) return "nothing";
    came_ = std::move(said->descriptors);
    return std::string(os::text_in(*said));
  }
  static std::string refusal(ErrorCode code) { return "!" + std::to_string(static_cast<int>(code)) + " "; }
  void expect_refused(const std::string& question, std::vector<int> attached = {},
                      ErrorCode code = ErrorCode::PermissionDenied) {
    EXPECT_THAT(ask(question, std::move(attached)), testing::StartsWith(refusal(code))) << question;
  }
  os::Fd own_file(const std::string& name, const std::string& folder = dumps) {
    const std::string path = sandbox_.file(folder + "/" + name);
    os::Fd file(::open(path.c_str(), O_RDWR | O_CREAT | O_CLOEXEC, 0600));
    EXPECT_EQ(::fchown(file.get(), agents_uid, agents_uid), 0);
    return file;
  }
  os::Fd own_pipe(const std::string& name, const std::string& folder = dumps + std::string("/pipes")) {
    const std::string path = sandbox_.file(folder + "/" + name);
    EXPECT_TRUE(os::make_fifo(path));
    EXPECT_EQ(::lchown(path.c_str(), agents_uid, agents_uid), 0);
    return os::find_file(path).value();
  }
  void make_pipes_folder() {
    const std::string path = sandbox_.file(dumps + std::string("/pipes"));
    EXPECT_TRUE(os::make_directories(path));
    EXPECT_EQ(::chown(path.c_str(), agents_uid, agents_uid), 0);
  }
  static uid_t owner_of(const os::Fd& file) { return os::facts_of(file)->owner; }

  os::RealKernel kernel_;
  Sandbox sandbox_;
  std::optional<os::Socket> socket_;
  os::Fd process_;
  pid_t pid_ = 0;
  std::vector<os::Fd> came_;
};

TEST_F(HelperOfRoots, StartsADaemonAndAsksIt) {
  ASSERT_EQ(ask("prepare a"), ".");
  const std::string started = ask("start a -");
  ASSERT_TRUE(started.starts_with(".")) << started;
  EXPECT_EQ(came_.size(), 1U);
  std::string answer;
  while (!answer.starts_with(".0 0\n")) answer = ask("control a 5000 get_server_list");
  EXPECT_EQ(answer, ".0 0\n");
  EXPECT_EQ(ask("bound a"), ".");
}

TEST_F(HelperOfRoots, AnswersNobodyWhoHasNoSocketForThat) {
  const os::Fd file = os::memory_file_with("x").value();
  say("devices", {});
  say("devices", {file.get()});
  say(std::string(os::most_bytes_in_a_message, 'x'), {file.get()});
  EXPECT_EQ(ask("devices"), ".");
  EXPECT_EQ(socket_->receive(Milliseconds(0)).error().code, ErrorCode::Timeout);
}

TEST_F(HelperOfRoots, DoesNothingThatIsNoQuestion) {
  for (const char* text : {"sh -c id", "prepare ../x", "prepare /tmp", "start a - LD_PRELOAD=/tmp/x.so",
                           "control a 1 set_default_device_pinned_mem_limit 0 1G", "give 1000", "mark 1"})
    expect_refused(text, {}, ErrorCode::InvalidArgument);
  EXPECT_FALSE(os::is_there(sandbox_.file("x")));
}

/// The agent may make files in the directory in which root acts.
TEST_F(HelperOfRoots, ActsInNoFolderButItsOwn) {
  ASSERT_TRUE(os::make_directories(sandbox_.file("elsewhere/pipe")));
  ASSERT_TRUE(os::make_directories(sandbox_.file("elsewhere/log")));
  ASSERT_EQ(::symlink(sandbox_.file("elsewhere").c_str(), sandbox_.file("d/a").c_str()), 0);
  for (const char* text : {"prepare a", "clear a", "start a -", "bound a", "control a 100 get_server_list",
                           "parked a 1", "name a 1"})
    expect_refused(text);
  EXPECT_FALSE(os::is_there(sandbox_.file("elsewhere/pipe/firebreak-parked")));
  EXPECT_FALSE(os::is_there(sandbox_.file("elsewhere/log/server.log")));
  EXPECT_TRUE(std::filesystem::is_symlink(sandbox_.file("d/a")));
  ASSERT_TRUE(os::make_directories(sandbox_.file("empty")));
  ASSERT_EQ(::symlink(sandbox_.file("empty").c_str(), sandbox_.file("d/b").c_str()), 0);
  expect_refused("prepare b");
  EXPECT_FALSE(os::is_there(sandbox_.file("empty/pipe")));
}

TEST_F(HelperOfRoots, ActsInNoFolderOfTheAgents) {
  ASSERT_TRUE(os::make_directories(sandbox_.file("d/b/pipe")));
  ASSERT_TRUE(os::make_directories(sandbox_.file("d/b/log")));
  ASSERT_EQ(::chown(sandbox_.file("d/b").c_str(), agents_uid, agents_uid), 0);
  for (const char* text :
       {"prepare b", "clear b", "start b -", "bound b", "control b 100 quit", "parked b 1"})
    expect_refused(text);
  ASSERT_EQ(::chown(sandbox_.file("d/b").c_str(), 0, 0), 0);
  ASSERT_EQ(::chmod(sandbox_.file("d/b").c_str(), 0770), 0);
  expect_refused("start b -");
  ASSERT_EQ(::chmod(sandbox_.file("d/b").c_str(), 0710), 0);
  ASSERT_EQ(::chown(sandbox_.file("d/b/log").c_str(), agents_uid, agents_uid), 0);
  expect_refused("start b -");
  ASSERT_EQ(::chown(sandbox_.file("d/b/log").c_str(), 0, 0), 0);
  ASSERT_EQ(::chown(sandbox_.file("d/b/pipe").c_str(), agents_uid, agents_uid), 0);
  expect_refused("start b -");
}

TEST_F(HelperOfRoots, GivesAwayWhatTheAgentHasMade) {
  make_pipes_folder();
  const os::Fd roots = own_pipe("roots");
  EXPECT_EQ(ask("give 0", {roots.get()}), ".");
  EXPECT_EQ(owner_of(roots), 0U);
  const os::Fd pipe = own_pipe("pipe");
  EXPECT_EQ(ask("give 65534", {pipe.get()}), ".");
  EXPECT_EQ(owner_of(pipe), 65534U);
  EXPECT_EQ(ask("mark 1", {pipe.get()}), ".");
  EXPECT_TRUE(os::is_marked_fifo(sandbox_.file(dumps + std::string("/pipes/pipe"))));
  EXPECT_EQ(ask("mark 0", {pipe.get()}), ".");
  EXPECT_FALSE(os::is_marked_fifo(sandbox_.file(dumps + std::string("/pipes/pipe"))));
}

TEST_F(HelperOfRoots, GivesAwayNothingElse) {
  make_pipes_folder();
  const std::string pipes = dumps + std::string("/pipes");
  ASSERT_TRUE(os::make_fifo(sandbox_.file(pipes + "/roots")));
  const os::Fd roots = os::find_file(sandbox_.file(pipes + "/roots")).value();
  expect_refused("give 65531", {roots.get()});
  EXPECT_EQ(owner_of(roots), 0U);
  const os::Fd file = own_file("file", pipes);  // somebody would believe what is in it
  for (const char* user : {"give 65534", "give 0"}) expect_refused(user, {file.get()});
  const os::Fd twice = own_pipe("twice");
  ASSERT_EQ(::link(sandbox_.file(pipes + "/twice").c_str(), sandbox_.file("again").c_str()), 0);
  expect_refused("give 65534", {twice.get()});
  const std::string path = sandbox_.file(pipes + "/folder");
  ASSERT_TRUE(os::make_directories(path));
  ASSERT_EQ(::chown(path.c_str(), agents_uid, agents_uid), 0);
  const os::Fd folder = os::find_file(path).value();
  expect_refused("give 65534", {folder.get()});
  for (const os::Fd* each : {&file, &twice, &folder}) EXPECT_EQ(owner_of(*each), agents_uid);
}

/// It may have made it where another user's programs look for one of that user's.
TEST_F(HelperOfRoots, GivesAwayNothingFromElsewhere) {
  const os::Fd beside = own_pipe("beside", dumps);
  expect_refused("give 65534", {beside.get()});
  ASSERT_TRUE(os::make_directories(sandbox_.file("home")));
  const os::Fd far = own_pipe("report", "home");
  expect_refused("give 65534", {far.get()});
  ASSERT_EQ(::symlink(sandbox_.file("home").c_str(), sandbox_.file(dumps + std::string("/pipes")).c_str()),
            0);
  expect_refused("give 65534", {far.get()});
  std::filesystem::rename(sandbox_.file(dumps), sandbox_.file("d/moved"));
  ASSERT_EQ(::symlink(sandbox_.file("home").c_str(), sandbox_.file(dumps).c_str()), 0);
  expect_refused("give 65534", {far.get()});
  for (const os::Fd* each : {&beside, &far}) EXPECT_EQ(owner_of(*each), agents_uid);
}

TEST_F(HelperOfRoots, KnowsNoDomainsButThoseOfItsCommandLine) {
  for (const char* domain : {"0a", "000a", "1b", "999b", "anchor", "0anchor"}) {
    expect_refused("prepare " + std::string(domain));
    expect_refused("start " + std::string(domain) + " -");
    EXPECT_FALSE(os::is_there(sandbox_.file("d/" + std::string(domain))));
  }
  ASSERT_EQ(ask("prepare a"), ".");
  expect_refused("start a GPU-8932f937-d72c-4106-c12f-20bd9faed9f6");
}

/// No child of it does, and no daemon.
TEST_F(HelperOfRoots, AloneHasTheDirectorysLock) {
  ASSERT_EQ(ask("prepare a"), ".");
  ASSERT_TRUE(ask("start a -").starts_with("."));
  const auto take = [this] { return os::FileLock::take(sandbox_.file("d/agent.lock")); };
  EXPECT_EQ(take().error().code, ErrorCode::Unavailable);
  for (const pid_t child : os::children_of(kernel_, pid_)) {
    EXPECT_TRUE(os::visit_descriptors(kernel_, child, [this](int, const std::string& target) {
      EXPECT_NE(target, sandbox_.file("d/agent.lock"));
      return true;
    }));
  }
}

TEST_F(HelperOfRoots, MarksNothingButPipesOfTheAgents) {
  const os::Fd file = own_file("file");
  expect_refused("mark 1", {file.get()});
  ASSERT_TRUE(os::make_fifo(sandbox_.file("of_root")));
  const os::Fd pipe = os::find_file(sandbox_.file("of_root")).value();
  expect_refused("mark 1", {pipe.get()});
  EXPECT_FALSE(os::is_marked_fifo(sandbox_.file("of_root")));
}

TEST_F(HelperOfRoots, NamesNoProcessThatIsNoServerOfTheDomain) {
  ASSERT_EQ(ask("prepare a"), ".");
  ASSERT_TRUE(ask("start a -").starts_with("."));
  std::string answer;
  while (!answer.starts_with(".0 0\n")) answer = ask("control a 5000 get_server_list");
  expect_refused("name a " + std::to_string(::getpid()));
}

TEST_F(HelperOfRoots, DoesNotEndWhereOthersAreToldTo) {
  for (const int each : {SIGTERM, SIGINT, SIGHUP}) ASSERT_TRUE(kernel_.send_signal(process_, each));
  EXPECT_EQ(ask("devices"), ".");
}

}  // namespace
}  // namespace firebreak::tests
