// SPDX-License-Identifier: Apache-2.0
#include "tools/tidy/rule.h"
#include "tools/tidy/words.h"

namespace firebreak::tidy {
namespace {

const std::vector<std::string_view>& system_calls() {
  static const std::vector<std::string_view> names{"open",
                                                   "openat",
                                                   "creat",
                                                   "ioctl",
                                                   "mmap",
                                                   "munmap",
                                                   "mprotect",
                                                   "fork",
                                                   "vfork",
                                                   "execv",
                                                   "execve",
                                                   "execvp",
                                                   "execvpe",
                                                   "execl",
                                                   "execlp",
                                                   "poll",
                                                   "ppoll",
                                                   "select",
                                                   "pselect",
                                                   "epoll_wait",
                                                   "epoll_create1",
                                                   "epoll_ctl",
                                                   "socket",
                                                   "socketpair",
                                                   "bind",
                                                   "connect",
                                                   "listen",
                                                   "accept",
                                                   "accept4",
                                                   "sendmsg",
                                                   "recvmsg",
                                                   "kill",
                                                   "tgkill",
                                                   "wait",
                                                   "waitpid",
                                                   "waitid",
                                                   "syscall",
                                                   "shm_open",
                                                   "shm_unlink",
                                                   "usleep",
                                                   "nanosleep",
                                                   "memfd_create",
                                                   "posix_spawn",
                                                   "pidfd_open",
                                                   "pidfd_getfd",
                                                   "posix_spawnp",
                                                   "popen",
                                                   "system",
                                                   "pidfd_send_signal",
                                                   "eventfd",
                                                   "timerfd_create",
                                                   "signalfd",
                                                   "prctl",
                                                   "ftruncate"};
  return names;
}

bool may_call_the_system(const SourceFile& file) {
  // A test plays the outside world: it may end processes and break files. The kernel part has no os::Kernel.
  // The table of imports answers a driver in the C library's place.
  return file.path().starts_with("src/program/instance/") || file.path().starts_with("src/ground/os/") ||
         file.path().starts_with("lab/softgpu/") || file.path().starts_with("tests/") ||
         file.path().starts_with("kernel/") || file.is_test();
}

}  // namespace

std::vector<Finding> check_os_calls(const SourceTree& tree) {
  std::vector<Finding> findings;
  for (const SourceFile& file : tree.files()) {
    if (!file.is_cpp() || may_call_the_system(file)) continue;
    for (const Word& call : find_calls(file.views().code, tree.companion_code(file), system_calls())) {
      findings.push_back({file.path(), file.line_of(call.offset), "os-calls",
                          std::string(call.text) + "() is called outside src/ground/os and softgpu"});
    }
  }
  return findings;
}

}  // namespace firebreak::tidy
