// SPDX-License-Identifier: Apache-2.0
#include "os/relay_channel.h"

#include <fcntl.h>
#include <poll.h>
#include <stdlib.h>
#include <sys/ioctl.h>
#include <termios.h>
#include <unistd.h>

#include <array>
#include <cerrno>

#include "os/errno_error.h"

namespace firebreak::os {
namespace {

Status make_non_blocking(const Fd& fd) {
  const int flags = ::fcntl(fd.get(), F_GETFL);
  if (flags >= 0 && ::fcntl(fd.get(), F_SETFL, flags | O_NONBLOCK) == 0) return {};
  return fail_errno("set a descriptor's flags", errno);
}

/// What `number` does to a text it does itself, when the text gets there.
void leave_bytes_as_they_are(int number, const Fd& terminal) {
  termios settings{};
  if (::tcgetattr(number, &settings) == 0) {
    settings.c_oflag &= ~static_cast<tcflag_t>(OPOST);
    (void)::tcsetattr(terminal.get(), TCSANOW, &settings);
  }
  winsize size{};
  if (::ioctl(number, TIOCGWINSZ, &size) == 0) (void)::ioctl(terminal.get(), TIOCSWINSZ, &size);
}

Result<RelayChannel> terminal_like(int number) {
  RelayChannel channel;
  channel.ours = Fd(::posix_openpt(O_RDWR | O_NOCTTY | O_CLOEXEC));
  std::array<char, 64> name{};
  if (!channel.ours || ::grantpt(channel.ours.get()) != 0 || ::unlockpt(channel.ours.get()) != 0 ||
      ::ptsname_r(channel.ours.get(), name.data(), name.size()) != 0) {
    return fail_errno("make a terminal", errno);
  }
  channel.theirs = Fd(::open(name.data(), O_RDWR | O_NOCTTY | O_CLOEXEC));
  if (!channel.theirs) return fail_errno("open a terminal", errno);
  leave_bytes_as_they_are(number, channel.theirs);
  return channel;
}

Result<RelayChannel> pipe_channel() {
  std::array<int, 2> ends{};
  if (::pipe2(ends.data(), O_CLOEXEC) != 0) return fail_errno("make a pipe", errno);
  return RelayChannel{Fd(ends[0]), Fd(ends[1])};
}

}  // namespace

Result<RelayChannel> channel_like(int number) {
  auto channel = ::isatty(number) != 0 ? terminal_like(number) : pipe_channel();
  if (!channel) return channel;
  if (Status set = make_non_blocking(channel->ours); !set) return propagate(set);
  return channel;
}

Status write_all(int number, std::span<const std::byte> bytes) {
  while (!bytes.empty()) {
    const ssize_t size = ::write(number, bytes.data(), bytes.size());
    if (size >= 0) {
      bytes = bytes.subspan(static_cast<std::size_t>(size));
    } else if (errno == EAGAIN) {
      // Somebody who shares it has asked it not to wait.
      pollfd writable{number, POLLOUT, 0};
      (void)::poll(&writable, 1, -1);
    } else if (errno != EINTR) {
      return fail_errno("write", errno);
    }
  }
  return {};
}

}  // namespace firebreak::os
