// SPDX-License-Identifier: Apache-2.0
#include "os/baton.h"

#include <fcntl.h>
#include <sys/file.h>

#include <cerrno>
#include <chrono>
#include <string>
#include <thread>

#include "os/errno_error.h"

namespace firebreak::os {
namespace {

/// Whoever holds it does so for one call; it is not worth a wake-up of its own.
constexpr std::chrono::microseconds look_pause{100};

}  // namespace

Result<Baton> Baton::of(int shared) {
  const std::string path = "/proc/self/fd/" + std::to_string(shared);
  Fd own(::open(path.c_str(), O_RDWR | O_CLOEXEC));
  if (!own) return fail_errno("open " + path, errno);
  return Baton(std::move(own));
}

Status Baton::take(Milliseconds timeout) {
  const auto deadline = std::chrono::steady_clock::now() + timeout;
  while (::flock(own_.get(), LOCK_EX | LOCK_NB) != 0) {
    if (errno != EWOULDBLOCK && errno != EINTR) return fail_errno("flock", errno);
    if (std::chrono::steady_clock::now() >= deadline)
      return fail(ErrorCode::Timeout, "another process of the tenant is still sending");
    std::this_thread::sleep_for(look_pause);
  }
  return {};
}

void Baton::give_back() { (void)::flock(own_.get(), LOCK_UN); }

}  // namespace firebreak::os
