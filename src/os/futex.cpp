// SPDX-License-Identifier: Apache-2.0
#include "os/futex.h"

#include <linux/futex.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <ctime>

namespace firebreak::os {

bool futex_wait(const std::atomic<std::uint32_t>& word, std::uint32_t expected,
                std::optional<Nanoseconds> timeout) {
  timespec limit{};
  if (timeout) {
    const auto ns = std::max<std::int64_t>(timeout->count(), 0);
    limit.tv_sec = static_cast<time_t>(ns / 1'000'000'000);
    limit.tv_nsec = static_cast<long>(ns % 1'000'000'000);
  }
  const long result =
      ::syscall(SYS_futex, &word, FUTEX_WAIT, expected, timeout ? &limit : nullptr, nullptr, 0);
  return result == 0 || errno != ETIMEDOUT;
}

int futex_wake(std::atomic<std::uint32_t>& word, int count) {
  return static_cast<int>(::syscall(SYS_futex, &word, FUTEX_WAKE, count, nullptr, nullptr, 0));
}

}  // namespace firebreak::os
