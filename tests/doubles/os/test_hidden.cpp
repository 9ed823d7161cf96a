// SPDX-License-Identifier: Apache-2.0
/// For tests: a process that does not let itself be looked at, by a file system of its own that does not
/// answer. Says in one line its number, an address in its memory, and a line's end, once it is so; 0 where
/// this machine does not let it. All is over when we end, who serve that file system.
///   exec    It is in an exec(), and closes a file first. It has a memory file "nvidia-uvm" as descriptor 77.
///   memory  The page at that address is of such a file.
///   lock    A thread of it waits for such a page, and another for the lock on its mappings, which the first
///   has.
///   file    Its standard error is such a file, and so are others of its descriptors.
///   many    It has very many descriptors, called as the software GPU's address spaces are.
/// With a number after that, the process is that user's.
#include <fcntl.h>
#include <fmt/core.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include <atomic>
#include <csignal>
#include <cstdlib>
#include <string_view>
#include <thread>

#include "ground/os/processes.h"
#include "ground/os/real_kernel.h"
#include "tests/doubles/os/fuse_file.h"

namespace {

constexpr std::size_t page_bytes = 4096;

struct Plan {
  std::string_view how;
  uid_t user = 0;
  int file = -1;
  int connection = -1;
  int gate = -1;
  void* page = nullptr;
};

void await_word(int gate) {
  char word = 0;
  while (::read(gate, &word, 1) != 1) ::pause();
}

/// Whoever changes mappings waits for whoever reads them, and lets nobody else read them meanwhile.
void hold_mappings(const Plan& plan) {
  std::thread([&plan] {
    [[maybe_unused]] const char byte = *static_cast<volatile char*>(plan.page);
  }).detach();
  await_word(plan.gate);
  ::mmap(nullptr, page_bytes, PROT_READ, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
}

void have_many() {
  rlimit limit{};
  if (::getrlimit(RLIMIT_NOFILE, &limit) != 0) return;
  limit.rlim_cur = limit.rlim_max;
  ::setrlimit(RLIMIT_NOFILE, &limit);
  while (::fcntl(77, F_DUPFD, 100) >= 0) {
  }
}

[[noreturn]] void be_hidden(const Plan& plan) {
  if (plan.user != 0 && ::setresuid(plan.user, plan.user, plan.user) != 0) ::raise(SIGKILL);
  ::prctl(PR_SET_PDEATHSIG, SIGKILL);
  ::close(plan.connection);  // first: else the end of who answers would not end our wait
  await_word(plan.gate);
  const int space = static_cast<int>(::syscall(SYS_memfd_create, "nvidia-uvm", 0U));
  if (space >= 0) ::dup2(space, 77);
  if (plan.how == "exec") ::execl("/bin/sleep", "sleep", "1000", nullptr);
  if (plan.how == "many") have_many();
  if (plan.how == "file") {
    for (const int number : {2, 77, 78}) ::dup2(plan.file, number);
  }
  ::mmap(plan.page, page_bytes, PROT_READ, MAP_SHARED | MAP_FIXED, plan.file, 0);
  if (plan.how == "lock") hold_mappings(plan);
  const int report = plan.gate;  // the other end hears of it
  [[maybe_unused]] const ssize_t sent = ::write(report, "m", 1);
  for (;;) ::pause();
}

/// Once it does, it waits for what nobody ends.
void await_uninterruptible(pid_t pid) {
  firebreak::os::RealKernel kernel;
  while (firebreak::os::state_in(kernel, firebreak::os::proc_folder(pid)) != 'D') std::this_thread::yield();
}

void say(pid_t pid, const void* address) {
  fmt::print("{} {}\n", pid, reinterpret_cast<std::uintptr_t>(address));
  std::fflush(stdout);
}

}  // namespace

int main(int count, char** arguments) {
  ::prctl(PR_SET_PDEATHSIG, SIGKILL);
  sigset_t ending;
  ::sigemptyset(&ending);
  ::sigaddset(&ending, SIGTERM);
  ::sigprocmask(SIG_BLOCK, &ending, nullptr);
  const std::string_view how = count > 1 ? arguments[1] : "";
  const auto user = static_cast<uid_t>(count > 2 ? std::atoi(arguments[2]) : 0);
  std::atomic<pid_t> hidden = 0;
  std::atomic<bool> is_asked = false;
  std::atomic<bool> is_silent = false;
  std::atomic<int> reads = 0;
  const auto swallow = [&](const fuse_in_header& question) {
    // Linux lets go of the lock while it asks for the first time; where that fails, it asks again with it.
    const bool is_read = question.opcode == FUSE_READ && (how != "lock" || ++reads > 1);
    const bool is_its = question.opcode == FUSE_FLUSH && static_cast<pid_t>(question.pid) == hidden;
    is_asked = is_asked || is_its || (is_read && how == "lock");
    return is_its || is_read || is_silent;
  };
  int ends[2]{-1, -1};
  void* const page = ::mmap(nullptr, page_bytes, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  const bool has_ends = ::socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, ends) == 0;
  {
    firebreak::os::FuseFile fuse(swallow);
    if (!has_ends || page == MAP_FAILED || !fuse.file()) {
      say(0, nullptr);
      return 0;
    }
    hidden = ::fork();
    if (hidden == 0) be_hidden({how, user, fuse.file().get(), fuse.connection(), ends[1], page});
    fuse.close_file();
    char word = 'g';
    if (::write(ends[0], &word, 1) != 1) return 1;
    const bool is_waiting = how == "exec" || how == "lock";
    while (is_waiting && !is_asked) std::this_thread::yield();
    if (how == "lock" && ::write(ends[0], &word, 1) == 1) await_uninterruptible(hidden);
    if (!is_waiting && ::read(ends[0], &word, 1) != 1) return 1;
    is_silent = how == "file";
    say(hidden, page);
    int signal = 0;
    ::sigwait(&ending, &signal);
  }
  ::kill(hidden, SIGKILL);
  ::waitpid(hidden, nullptr, 0);
  return 0;
}
