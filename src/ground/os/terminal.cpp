// SPDX-License-Identifier: Apache-2.0
#include "ground/os/terminal.h"

#include <fcntl.h>
#include <signal.h>
#include <sys/ioctl.h>
#include <unistd.h>

#include <cerrno>
#include <string>

#include "ground/os/fd.h"
#include "ground/os/looks.h"
#include "ground/os/processes.h"

namespace firebreak::os {

Result<TerminalSize> terminal_size(int number) {
  if (::isatty(number) != 1) return fail(ErrorCode::Unsupported, "that is no terminal");
  winsize found{};
  if (::ioctl(number, TIOCGWINSZ, &found) != 0 || found.ws_col == 0 || found.ws_row == 0)
    return TerminalSize();
  return TerminalSize{found.ws_col, found.ws_row};
}

namespace {

bool has_controlling_terminal() {
  constexpr int its_terminal = 7;
  return stat_field(read_small_file("/proc/self/stat").value_or(""), its_terminal) != "0";
}

Status replace(int number, const std::string& path, int flags) {
  const Fd opened(::open(path.c_str(), flags | O_NOCTTY | O_CLOEXEC));
  if (!opened || ::dup2(opened.get(), number) < 0) return fail_errno("open " + path, errno);
  return {};
}

}  // namespace

Status leave_terminal() {
  // A session's leader is told that the terminal is gone.
  const auto before = ::signal(SIGHUP, SIG_IGN);
  if (const Fd own(::open("/dev/tty", O_RDWR | O_NOCTTY | O_CLOEXEC)); own)
    (void)::ioctl(own.get(), TIOCNOTTY);
  for (const int number : {STDIN_FILENO, STDOUT_FILENO, STDERR_FILENO}) (void)::ioctl(number, TIOCNOTTY);
  ::signal(SIGHUP, before);
  if (has_controlling_terminal()) (void)::setsid();
  if (has_controlling_terminal())
    return fail(ErrorCode::PermissionDenied, "this process cannot leave its terminal",
                "start it by setsid(1)");
  if (auto replaced = replace(STDIN_FILENO, "/dev/null", O_RDONLY); !replaced) return replaced;
  // A shell's are open for both.
  for (const int number : {STDOUT_FILENO, STDERR_FILENO}) {
    if (::isatty(number) != 1) continue;
    const std::string path = "/proc/self/fd/" + std::to_string(number);
    if (auto replaced = replace(number, path, O_WRONLY); !replaced) return replaced;
  }
  return {};
}

}  // namespace firebreak::os
