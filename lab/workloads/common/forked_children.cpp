// SPDX-License-Identifier: Apache-2.0
#include "workloads/common/forked_children.h"

#include <unistd.h>

namespace firebreak::workloads {
namespace {

/// PyTorch's workers look after their parent every five seconds.
constexpr unsigned int between_looks_s = 3;

/// Children have no threads, so only system calls are made here.
[[noreturn]] void idle_as_long_as(pid_t parent) {
  while (::getppid() == parent) ::sleep(between_looks_s);
  ::_exit(0);
}

}  // namespace

Status fork_children(std::uint32_t count) {
  const pid_t self = ::getpid();
  for (std::uint32_t i = 0; i < count; ++i) {
    const pid_t child = ::fork();
    if (child < 0) return fail(ErrorCode::ResourceExhausted, "no child by fork()");
    if (child == 0) idle_as_long_as(self);
  }
  return {};
}

}  // namespace firebreak::workloads
