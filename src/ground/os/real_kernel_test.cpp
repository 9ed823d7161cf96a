// SPDX-License-Identifier: Apache-2.0
#include "ground/os/real_kernel.h"

#include <fcntl.h>
#include <gmock/gmock.h>
#include <pthread.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include <array>
#include <atomic>
#include <csignal>
#include <thread>

#include "ground/os/file.h"
#include "ground/os/memory.h"
#include "ground/os/processes.h"
#include "ground/os/program.h"
#include "ground/os/self.h"
#include "ground/os/socket.h"

namespace firebreak::os {
namespace {

using testing::Contains;
using testing::HasSubstr;
using testing::Not;

constexpr Milliseconds long_enough{30'000};

class RealKernelTest : public testing::Test {
 protected:
  ProgramResult run(std::vector<std::string> command, std::string_view input = "") {
    SpawnRequest request;
    request.command = std::move(command);
    auto result = run_program(kernel_, request, input, long_enough);
    EXPECT_TRUE(result) << to_string(result.error());
    return result.value_or(ProgramResult{});
  }
  RealKernel kernel_;
};

TEST_F(RealKernelTest, ReadsFilesLinksAndDirectories) {
  const TemporaryDirectory directory = TemporaryDirectory::create().value();
  Fd file = kernel_.open(directory.path() + "/file", O_CREAT | O_RDWR).value();
  EXPECT_NE(::fcntl(file.get(), F_GETFD) & FD_CLOEXEC, 0);
  ASSERT_EQ(::write(file.get(), "abc", 3), 3);
  EXPECT_EQ(kernel_.read_file(directory.path() + "/file").value(), "abc");
  EXPECT_EQ(kernel_.read_link("/proc/self/fd/" + std::to_string(file.get())).value(),
            directory.path() + "/file");
  EXPECT_THAT(kernel_.list_directory(directory.path()).value(), testing::ElementsAre("file"));
  std::array<std::byte, 8> buffer{};
  EXPECT_EQ(kernel_.read(file, buffer).value(), 0u);
  EXPECT_GT(kernel_.read_file("/proc/self/status").value().size(), 0u);
}

TEST_F(RealKernelTest, SaysWhatWentWrong) {
  EXPECT_EQ(kernel_.open("/no/such/file", O_RDONLY).error().code, ErrorCode::NotFound);
  EXPECT_EQ(kernel_.read_link("/no/such/file").error().code, ErrorCode::NotFound);
  EXPECT_EQ(kernel_.list_directory("/no/such").error().code, ErrorCode::NotFound);
  EXPECT_THAT(kernel_.read_file("/no/such/file").error().message, HasSubstr("/no/such/file: No such file"));
  EXPECT_EQ(kernel_.pidfd_open(0x3fffffff).error().code, ErrorCode::NotFound);
  EXPECT_EQ(kernel_.try_wait(1).error().code, ErrorCode::NotFound);
  const Fd file = memory_file_with("").value();
  EXPECT_FALSE(kernel_.ioctl(file, TIOCGWINSZ, nullptr));
}

TEST_F(RealKernelTest, ANonBlockingReadWithoutDataIsUnavailable) {
  auto [left, right] = socket_pair().value();
  std::array<std::byte, 8> buffer{};
  EXPECT_EQ(kernel_.read(right.fd(), buffer).error().code, ErrorCode::Unavailable);
}

TEST_F(RealKernelTest, PollTellsWhichIsReadable) {
  auto [left, right] = socket_pair().value();
  const std::array fds{left.fd().get(), right.fd().get()};
  EXPECT_TRUE(kernel_.poll(fds, Milliseconds(0)).value().empty());
  ASSERT_TRUE(left.send(std::as_bytes(std::span("x", 1)), {}, Milliseconds(0)));
  EXPECT_THAT(kernel_.poll(fds, long_enough).value(), testing::ElementsAre(1u));
}

TEST_F(RealKernelTest, RunsAProgramWithInputAndOutput) {
  const ProgramResult result = run({"cat"}, "hello");
  EXPECT_TRUE(result.status.clean());
  EXPECT_EQ(result.output, "hello");
}

TEST_F(RealKernelTest, TellsHowAProgramEnded) {
  EXPECT_EQ(run({"false"}).status.exit_code, 1);
  SpawnRequest request;
  request.command = {"sleep", "1000"};
  const pid_t pid = kernel_.spawn(request).value();
  const Fd pidfd = kernel_.pidfd_open(pid).value();
  EXPECT_FALSE(kernel_.try_wait(pid).value());
  ASSERT_TRUE(kernel_.send_signal(pidfd, SIGTERM));
  const auto status = wait_for_child(kernel_, pid, pidfd, long_enough).value();
  ASSERT_TRUE(status);
  EXPECT_EQ(status->signal, SIGTERM);
  EXPECT_FALSE(kernel_.try_wait(pid));
}

int forks = 0;

/// fork() copies the page tables, which holds up each thread that lacks a page. It is seen by what the C
/// library calls before it.
TEST_F(RealKernelTest, ToStartAProgramCopiesNoMemory) {
  ASSERT_EQ(::pthread_atfork([] { ++forks; }, nullptr, nullptr), 0);
  const int before = forks;
  EXPECT_TRUE(run({"true"}).status.clean());
  EXPECT_EQ(forks, before);
}

/// The child is in our memory until its exec: a handler of ours that ran in it would change that.
TEST_F(RealKernelTest, AProgramThatStartsRunsNoHandlerOfOurs) {
  static std::atomic<int> calls{0};
  struct sigaction action {};
  struct sigaction before {};
  action.sa_handler = [](int) { ++calls; };
  ASSERT_EQ(::sigaction(SIGUSR2, &action, &before), 0);
  SpawnRequest request;
  request.command = {"sleep", "1000"};
  std::atomic<bool> is_over{false};
  // Whoever is a child of ours gets it, as soon as it is there.
  std::thread sender([&] {
    while (!is_over)
      for (const pid_t child : children_of(kernel_, ::getpid())) ::kill(child, SIGUSR2);
  });
  int ended_by_it = 0;
  for (int i = 0; i < 50; ++i) {
    const auto pid = kernel_.spawn(request);
    if (!pid) continue;  // the process ended before its exec
    const Fd pidfd = kernel_.pidfd_open(*pid).value();
    const auto status = wait_for_child(kernel_, *pid, pidfd, long_enough).value();
    ended_by_it += status && status->signal == SIGUSR2 ? 1 : 0;
  }
  is_over = true;
  sender.join();
  ASSERT_EQ(::sigaction(SIGUSR2, &before, nullptr), 0);
  EXPECT_EQ(calls, 0);
  EXPECT_GT(ended_by_it, 0);
}

TEST_F(RealKernelTest, AProgramThatHasStartedHasItsEnvironment) {
  SpawnRequest request;
  request.command = {"sleep", "1000"};
  for (int i = 0; i < 300; ++i) {
    const pid_t pid = kernel_.spawn(request).value();
    const std::string environment = read_small_file(proc_folder(pid) + "/environ").value_or("");
    ASSERT_TRUE(kill_child(kernel_, pid, kernel_.pidfd_open(pid).value()));
    ASSERT_THAT(environment, HasSubstr("PATH=")) << i;
  }
}

TEST_F(RealKernelTest, AProgramThatDoesNotEndIsKilled) {
  SpawnRequest request;
  request.command = {"sleep", "1000"};
  const auto result = run_program(kernel_, request, "", Milliseconds(20));
  ASSERT_FALSE(result);
  EXPECT_EQ(result.error().code, ErrorCode::Timeout);
  EXPECT_EQ(kernel_.try_wait(-1).error().code, ErrorCode::NotFound) << "a child is left behind";
}

TEST_F(RealKernelTest, AddsToTheEnvironmentAndReplaces) {
  SpawnRequest request;
  request.command = {"env"};
  request.environment = {{"HOME", "/elsewhere"}, {"FIREBREAK_TEST_VALUE", "a=b"}};
  const std::string output = run_program(kernel_, request, "", long_enough).value().output;
  EXPECT_THAT(output, HasSubstr("FIREBREAK_TEST_VALUE=a=b\n"));
  EXPECT_THAT(output, HasSubstr("HOME=/elsewhere\n"));
  EXPECT_THAT(output, HasSubstr("PATH="));
  EXPECT_EQ(("\n" + output).find("\nHOME="), ("\n" + output).rfind("\nHOME="));
}

TEST_F(RealKernelTest, AProgramThatIsNotThereIsNotFound) {
  SpawnRequest request;
  request.command = {"no-such-program-anywhere"};
  EXPECT_EQ(kernel_.spawn(request).error().code, ErrorCode::NotFound);
  request.command = {};
  EXPECT_EQ(kernel_.spawn(request).error().code, ErrorCode::InvalidArgument);
}

TEST_F(RealKernelTest, AProgramThatCannotRunIsAnErrorWithItsReason) {
  const TemporaryDirectory directory = TemporaryDirectory::create().value();
  const std::string path = directory.path() + "/broken";
  {
    const Fd file = kernel_.open(path, O_CREAT | O_WRONLY).value();
    ASSERT_EQ(::write(file.get(),
                      "\x7f"
                      "ELF",
                      4),
              4);
    ASSERT_EQ(::fchmod(file.get(), 0700), 0);
  }
  SpawnRequest request;
  request.command = {path};
  const auto pid = kernel_.spawn(request);
  ASSERT_FALSE(pid);
  EXPECT_THAT(pid.error().message, HasSubstr("broken"));
}

TEST_F(RealKernelTest, AHeldStartRunsItsProgramOnceItIsLetBegin) {
  SpawnRequest request;
  request.command = {"sh", "-c", "exit 7"};
  HeldStart held = spawn_held(request).value();
  const pid_t pid = held.pid;
  const Fd pidfd = kernel_.pidfd_open(pid).value();
  EXPECT_EQ(kernel_.read_link("/proc/" + std::to_string(pid) + "/exe").value(), executable_path().value());
  ASSERT_TRUE(let_begin(std::move(held)));
  EXPECT_EQ(wait_for_child(kernel_, pid, pidfd, long_enough).value()->exit_code, 7);
}

TEST_F(RealKernelTest, AHeldStartThatIsGivenUpRunsNothing) {
  const TemporaryDirectory directory = TemporaryDirectory::create().value();
  const std::string begun = directory.path() + "/begun";
  SpawnRequest request;
  request.command = {"touch", begun};
  auto held = std::make_optional(spawn_held(request).value());
  const pid_t pid = held->pid;
  const Fd pidfd = kernel_.pidfd_open(pid).value();
  held.reset();
  EXPECT_EQ(wait_for_child(kernel_, pid, pidfd, long_enough).value()->exit_code, 127);
  EXPECT_FALSE(kernel_.open(begun, O_RDONLY));
}

TEST_F(RealKernelTest, AHeldStartThatIsKilledOrCannotRunEndsAsOthersDo) {
  SpawnRequest request;
  request.command = {"sleep", "1000"};
  HeldStart killed = spawn_held(request).value();
  const pid_t pid = killed.pid;
  const Fd pidfd = kernel_.pidfd_open(pid).value();
  ASSERT_TRUE(kernel_.send_signal(pidfd, SIGKILL));
  while (kernel_.read_link("/proc/" + std::to_string(pid) + "/exe")) {
  }
  EXPECT_TRUE(let_begin(std::move(killed))) << "nobody is at the gate";
  EXPECT_EQ(wait_for_child(kernel_, pid, pidfd, long_enough).value()->signal, SIGKILL);

  const TemporaryDirectory directory = TemporaryDirectory::create().value();
  const std::string empty = directory.path() + "/empty";
  ASSERT_EQ(::fchmod(kernel_.open(empty, O_CREAT | O_WRONLY).value().get(), 0700), 0);
  request.command = {empty};
  const Status began = let_begin(spawn_held(request).value());
  ASSERT_FALSE(began);
  EXPECT_THAT(began.error().message, HasSubstr("start " + empty));
}

TEST_F(RealKernelTest, PassesOnOnlyTheDescriptorsThatWereAsked) {
  const Fd low(::memfd_create("secret", 0));
  const Fd secret(::fcntl(low.get(), F_DUPFD, 300));
  const Fd gift = memory_file_with("gift").value();
  const Fd other = memory_file_with("other").value();
  SpawnRequest request;
  // The targets overlap the sources, as they may.
  request.inherited = {{gift.get(), other.get()}, {other.get(), gift.get()}};
  request.command = {"cat", "/proc/self/fd/" + std::to_string(gift.get()),
                     "/proc/self/fd/" + std::to_string(other.get())};
  const auto result = run_program(kernel_, request, "", long_enough);
  ASSERT_TRUE(result);
  EXPECT_EQ(result->output, "othergift");
  request.command = {"ls", "/proc/self/fd"};
  const auto listing = run_program(kernel_, request, "", long_enough);
  ASSERT_TRUE(listing);
  EXPECT_THAT("\n" + listing->output, Not(HasSubstr("\n" + std::to_string(secret.get()) + "\n")));
  EXPECT_THAT("\n" + listing->output, HasSubstr("\n" + std::to_string(gift.get()) + "\n"));
}

TEST_F(RealKernelTest, AChildStartsWithoutOurBlockedSignals) {
  sigset_t blocked;
  sigset_t before;
  sigemptyset(&blocked);
  sigaddset(&blocked, SIGTERM);
  ASSERT_EQ(::pthread_sigmask(SIG_BLOCK, &blocked, &before), 0);
  const std::string status = run({"cat", "/proc/self/status"}).output;
  ASSERT_EQ(::pthread_sigmask(SIG_SETMASK, &before, nullptr), 0);
  EXPECT_THAT(status, HasSubstr("SigBlk:\t0000000000000000"));
}

TEST_F(RealKernelTest, DuplicatesAnotherProcessesDescriptor) {
  const Fd file = memory_file_with("shared").value();
  SpawnRequest request;
  request.command = {"sleep", "1000"};
  request.inherited = {{file.get(), 77}};
  const pid_t pid = kernel_.spawn(request).value();
  const Fd pidfd = kernel_.pidfd_open(pid).value();
  const auto copy = kernel_.pidfd_getfd(pidfd, 77, "/memfd:content (deleted)");
  EXPECT_TRUE(kill_child(kernel_, pid, pidfd));
  if (!copy && copy.error().code == ErrorCode::PermissionDenied) GTEST_SKIP() << to_string(copy.error());
  ASSERT_TRUE(copy) << to_string(copy.error());
  EXPECT_EQ(content_of(copy->get()).value(), "shared");
}

}  // namespace
}  // namespace firebreak::os
