// SPDX-License-Identifier: Apache-2.0
/// A process with a software GPU, an agent that says yes, and sessions of libfirebreak.
#pragma once

#include <firebreak/firebreak.h>
#include <gtest/gtest.h>

#include <memory>
#include <optional>
#include <string>

#include "ground/os/file.h"
#include "ground/os/self.h"
#include "program/cuda/first_gpu.h"
#include "program/cuda/stream.h"
#include "tests/client/small_agent.h"

namespace firebreak::testing_agent {

/// One for the process: its software GPU is read from the environment once.
inline const cuda::FirstGpu& soft_gpu() {
  struct Machine {
    os::TemporaryDirectory directory = std::move(os::TemporaryDirectory::create().value());
    os::EnvironmentScope scope{
        {{"FIREBREAK_SOFTGPU_DIR", directory.path()}, {"FIREBREAK_CUDA_LIBRARY", FIREBREAK_SOFTGPU_LIBRARY}}};
    cuda::FirstGpu gpu = std::move(cuda::FirstGpu::open(FIREBREAK_SOFTGPU_LIBRARY).value());
  };
  // The main thread's, so that it goes before the driver's own variables of that thread do.
  static thread_local const Machine machine;
  return machine.gpu;
}

/// An agent, and who joins it.
struct SessionTest : testing::Test {
  const cuda::FirstGpu& gpu = soft_gpu();
  cuda::Stream stream = std::move(cuda::Stream::create(gpu.driver()).value());
  std::unique_ptr<SmallAgent> agent = std::move(SmallAgent::start().value());

  static fb_status join(const SmallAgent& where, fb_role role, fb_session** session) {
    const fb_join_options options{sizeof options, where.socket_path().c_str(), "tenant", role};
    return fb_join(&options, session);
  }
  fb_session* join(fb_role role) {
    fb_session* session = nullptr;
    EXPECT_EQ(join(*agent, role, &session), FB_OK) << fb_last_error(nullptr);
    return session;
  }
  fb_status commit(fb_session* session, std::uint64_t step, const std::string& state) {
    return fb_commit(session, stream.handle(), step, state.data(), state.size());
  }
  fb_status change(fb_session* session, std::uint64_t step, std::uint64_t offset, const std::string& bytes) {
    const fb_change change{offset, bytes.data(), bytes.size()};
    return fb_commit_changes(session, stream.handle(), step, &change, 1);
  }
  /// What a standby finds once it is promoted.
  static std::string state_of(const fb_resume& resume) {
    return {static_cast<const char*>(resume.state), resume.state_bytes};
  }
  void gpu_catches_up() { ASSERT_TRUE(stream.synchronize()); }
};

}  // namespace firebreak::testing_agent
