// SPDX-License-Identifier: Apache-2.0
#include "tests/fuzz/thin_process.h"

#include <linux/futex.h>
#include <sched.h>
#include <signal.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <sys/un.h>
#include <sys/wait.h>
#include <unistd.h>

#include <atomic>
#include <cstdint>
#include <cstring>

namespace firebreak::fuzz {
namespace {

constexpr std::size_t stack_bytes = 32 * 1024;

void wait_while(std::atomic<std::uint32_t>& word, std::uint32_t value) {
  while (word.load() == value) ::syscall(SYS_futex, &word, FUTEX_WAIT, value, nullptr, nullptr, 0);
}

void change(std::atomic<std::uint32_t>& word) {
  word.fetch_add(1);
  ::syscall(SYS_futex, &word, FUTEX_WAKE, 1, nullptr, nullptr, 0);
}

}  // namespace

struct ThinProcess::Shared {
  uid_t user = 0;
  gid_t group = 0;
  std::atomic<std::uint32_t> asked{0};     ///< counts what it is told
  std::atomic<std::uint32_t> answered{0};  ///< and what it has done
  sockaddr_un address{};
  int descriptor = -1;
};

ThinProcess::ThinProcess() : shared_(std::make_unique<Shared>()), stack_(stack_bytes) {}

/// With bare system calls: what the C library knows of this process is the other one's.
int ThinProcess::live(void* shared) {
  Shared& its = *static_cast<Shared*>(shared);
  long failed = ::syscall(SYS_setgroups, 0, nullptr);
  failed |= ::syscall(SYS_setresgid, its.group, its.group, its.group);
  failed |= ::syscall(SYS_setresuid, its.user, its.user, its.user);
  failed |= ::syscall(SYS_prctl, PR_SET_PDEATHSIG, SIGKILL, 0, 0, 0);
  its.descriptor = failed == 0 ? 0 : -1;
  change(its.answered);
  for (std::uint32_t seen = 0;; ++seen) {
    wait_while(its.asked, seen);
    const auto made =
        static_cast<int>(::syscall(SYS_socket, AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC | SOCK_NONBLOCK, 0));
    const long connected = ::syscall(SYS_connect, made, &its.address, sizeof(its.address));
    if (connected != 0 && made >= 0) ::syscall(SYS_close, made);
    its.descriptor = connected == 0 ? made : -1;
    change(its.answered);
  }
}

std::unique_ptr<ThinProcess> ThinProcess::start(uid_t user, gid_t group) {
  std::unique_ptr<ThinProcess> made(new ThinProcess());
  Shared& shared = *made->shared_;
  shared.user = user;
  shared.group = group;
  constexpr int flags = CLONE_VM | CLONE_FILES | SIGCHLD;
  made->pid_ = ::clone(live, made->stack_.data() + stack_bytes, flags, &shared);
  if (made->pid_ < 0) return nullptr;
  wait_while(shared.answered, 0);
  return shared.descriptor == 0 ? std::move(made) : nullptr;
}

ThinProcess::~ThinProcess() {
  if (pid_ <= 0) return;
  ::kill(pid_, SIGKILL);
  while (::waitpid(pid_, nullptr, 0) < 0 && errno == EINTR) {
  }
}

os::Fd ThinProcess::connect(const std::string& path) {
  shared_->address.sun_family = AF_UNIX;
  std::strncpy(shared_->address.sun_path, path.c_str(), sizeof(shared_->address.sun_path) - 1);
  const std::uint32_t before = shared_->answered.load();
  change(shared_->asked);
  wait_while(shared_->answered, before);
  return os::Fd(shared_->descriptor);
}

}  // namespace firebreak::fuzz
