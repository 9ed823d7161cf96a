// SPDX-License-Identifier: Apache-2.0
/// For tests: a process that does not let itself be looked at, by a file system of its own that does not
/// answer. Says in one line its number, an address in its memory, and a line's end, once it is so; 0 where
/// this machine does not let it. All is over when we end, who serve that file system.
///   exec    It is in an exec(), and closes a file first. It has a memory file "nvidia-uvm" as descriptor 77.
///   memory  The page at that address is of such a file.
#include <fmt/core.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include <atomic>
#include <csignal>
#include <string_view>
#include <thread>

#include "os/fuse_file.h"

namespace {

constexpr std::size_t page_bytes = 4096;

struct Plan {
  std::string_view how;
  int file = -1;
  int connection = -1;
  int gate = -1;
  void* page = nullptr;
};

[[noreturn]] void be_hidden(const Plan& plan) {
  ::prctl(PR_SET_PDEATHSIG, SIGKILL);
  ::close(plan.connection);  // first: else the end of who answers would not end our wait
  char word = 0;
  while (::read(plan.gate, &word, 1) != 1) ::pause();
  const int space = static_cast<int>(::syscall(SYS_memfd_create, "nvidia-uvm", 0U));
  if (space >= 0) ::dup2(space, 77);
  if (plan.how == "exec") ::execl("/bin/sleep", "sleep", "1000", nullptr);
  if (plan.how == "memory") ::mmap(plan.page, page_bytes, PROT_READ, MAP_SHARED | MAP_FIXED, plan.file, 0);
  const int report = plan.gate;  // the other end hears of it
  [[maybe_unused]] const ssize_t sent = ::write(report, "m", 1);
  for (;;) ::pause();
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
  std::atomic<pid_t> hidden = 0;
  std::atomic<bool> is_asked = false;
  const auto swallow = [&](const fuse_in_header& question) {
    const bool is_its = question.opcode == FUSE_FLUSH && static_cast<pid_t>(question.pid) == hidden;
    is_asked = is_asked || is_its;
    return is_its || question.opcode == FUSE_READ;
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
    if (hidden == 0) be_hidden({how, fuse.file().get(), fuse.connection(), ends[1], page});
    fuse.close_file();
    char word = 'g';
    if (::write(ends[0], &word, 1) != 1) return 1;
    while (how == "exec" && !is_asked) std::this_thread::yield();
    if (how == "memory" && ::read(ends[0], &word, 1) != 1) return 1;
    say(hidden, page);
    int signal = 0;
    ::sigwait(&ending, &signal);
  }
  ::kill(hidden, SIGKILL);
  ::waitpid(hidden, nullptr, 0);
  return 0;
}
