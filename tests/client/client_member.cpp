// SPDX-License-Identifier: Apache-2.0
/// A tenant's process, with libfirebreak, for tests to speak to: joins as its environment says, gets ready
/// where it is a standby, and then answers each byte on descriptor 3 with what fb_wait_promotion came to.
#include <firebreak/firebreak.h>

#include <cstdio>

#include "cuda/first_gpu.h"
#include "os/socket.h"

namespace {

using namespace firebreak;

bool say(os::Socket& test, fb_status status) {
  const auto word = static_cast<std::byte>(status);
  return test.send(std::span(&word, 1), {}, Milliseconds(5000)).has_value();
}

}  // namespace

int main() {
  os::Socket test{os::Fd(3)};
  const auto gpu = cuda::FirstGpu::open(FIREBREAK_SOFTGPU_LIBRARY);
  if (!gpu) return 2;
  fb_session* session = nullptr;
  fb_status joined = fb_join(nullptr, &session);
  if (joined == FB_OK && fb_session_role(session) == FB_ROLE_STANDBY) joined = fb_ready(session);
  if (joined != FB_OK) std::fprintf(stderr, "%s\n", fb_last_error(session));
  if (!say(test, joined) || joined != FB_OK) return 3;
  while (test.receive(Milliseconds(-1))) {
    fb_resume resume{};
    if (!say(test, fb_wait_promotion(session, 0, &resume))) return 3;
  }
  return 0;
}
