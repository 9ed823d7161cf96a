// SPDX-License-Identifier: Apache-2.0
/// A tenant's process, with libfirebreak, for tests to speak to: joins as its environment says, gets ready
/// where it is a standby, commits one step where it is the active one, and then answers each byte on
/// descriptor 3 with what fb_wait_promotion came to, and with the step to go on at. `starved`: it has a
/// descriptor for its connection, and none for what the agent sends it.
#include <firebreak/firebreak.h>
#include <sys/resource.h>
#include <unistd.h>

#include <array>
#include <cstdio>
#include <string_view>

#include "ground/os/socket.h"
#include "program/cuda/first_gpu.h"
#include "program/cuda/stream.h"

namespace {

using namespace firebreak;

bool say(os::Socket& test, fb_status status, std::uint64_t next_step) {
  const std::array words = {static_cast<std::byte>(status), static_cast<std::byte>(next_step)};
  return test.send(words, {}, Milliseconds(5000)).has_value();
}

void leave_one_descriptor() {
  const int next = ::dup(0);
  ::close(next);
  const rlimit limit{static_cast<rlim_t>(next) + 1, static_cast<rlim_t>(next) + 1};
  ::setrlimit(RLIMIT_NOFILE, &limit);
}

/// Where nothing was committed yet, the first step is.
fb_status begin(fb_session* session, const cuda::FirstGpu& gpu) {
  if (fb_session_role(session) == FB_ROLE_STANDBY) return fb_ready(session);
  fb_resume resume{};
  const fb_status active = fb_wait_promotion(session, 0, &resume);
  if (active != FB_OK || resume.next_step > 0) return active;
  const auto stream = cuda::Stream::create(gpu.driver());
  const fb_status committed = stream ? fb_commit(session, stream->handle(), 0, "abc", 3) : FB_ERROR_CUDA;
  return committed == FB_OK && !stream->synchronize() ? FB_ERROR_CUDA : committed;
}

}  // namespace

int main(int count, char** arguments) {
  os::Socket test{os::Fd(3)};
  const auto gpu = cuda::FirstGpu::open(FIREBREAK_SOFTGPU_LIBRARY);
  if (!gpu) return 2;
  if (count > 1 && std::string_view(arguments[1]) == "starved") leave_one_descriptor();
  fb_session* session = nullptr;
  fb_status joined = fb_join(nullptr, &session);
  if (joined == FB_OK) joined = begin(session, *gpu);
  if (joined != FB_OK) std::fprintf(stderr, "%s\n", fb_last_error(session));
  if (!say(test, joined, 0) || joined != FB_OK) return 3;
  while (test.receive(Milliseconds(-1))) {
    fb_resume resume{};
    const fb_status status = fb_wait_promotion(session, 0, &resume);
    if (!say(test, status, resume.next_step)) return 3;
  }
  return 0;
}
