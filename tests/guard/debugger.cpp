// SPDX-License-Identifier: Apache-2.0
/// A debugger that is quit while its program runs: what it attached to is killed.
#include <sys/ptrace.h>

#include <cstdio>
#include <cstdlib>

int main(int count, char** arguments) {
  const auto pid = static_cast<pid_t>(count > 1 ? std::atoi(arguments[1]) : 0);
  if (::ptrace(PTRACE_SEIZE, pid, nullptr, PTRACE_O_EXITKILL) == 0) return 0;
  std::perror("attach");
  return 1;
}
