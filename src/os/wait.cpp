// SPDX-License-Identifier: Apache-2.0
#include "os/wait.h"

#include <poll.h>

#include <algorithm>
#include <cerrno>
#include <limits>

#include "base/clock.h"
#include "os/errno_error.h"

namespace firebreak::os {
namespace {

int remaining_ms(Monotonic deadline) {
  const auto left = std::chrono::ceil<Milliseconds>(deadline - SystemClock().now()).count();
  return static_cast<int>(std::clamp<std::int64_t>(left, 0, std::numeric_limits<int>::max()));
}

/// A signal handler of the program must not end a wait early.
int poll_again_after_signals(std::span<pollfd> entries, std::chrono::milliseconds timeout) {
  const Monotonic deadline = SystemClock().now() + timeout;
  while (true) {
    const int wait_ms = timeout.count() < 0 ? -1 : remaining_ms(deadline);
    const int ready = ::poll(entries.data(), entries.size(), wait_ms);
    if (ready >= 0 || errno != EINTR) return ready;
  }
}

}  // namespace

Result<std::vector<std::size_t>> poll_readable(std::span<const int> fds, std::chrono::milliseconds timeout) {
  std::vector<pollfd> entries;
  entries.reserve(fds.size());
  for (const int fd : fds) entries.push_back(pollfd{fd, POLLIN, 0});
  if (poll_again_after_signals(entries, timeout) < 0) return fail_errno("poll", errno);
  std::vector<std::size_t> ready;
  for (std::size_t i = 0; i < entries.size(); ++i) {
    if (entries[i].revents != 0) ready.push_back(i);
  }
  return ready;
}

Result<bool> poll_writable(int fd, std::chrono::milliseconds timeout) {
  pollfd entry{fd, POLLOUT, 0};
  const int ready = poll_again_after_signals(std::span(&entry, 1), timeout);
  if (ready < 0) return fail_errno("poll", errno);
  return ready > 0;
}

}  // namespace firebreak::os
