// SPDX-License-Identifier: Apache-2.0
/// The parking client's program, with a driver in which it stands still.
#include <gtest/gtest.h>

#include <array>
#include <string>

#include "ground/os/file.h"
#include "ground/os/real_kernel.h"
#include "ground/os/socket.h"

namespace firebreak::park {
namespace {

class ClientProgram : public testing::Test {
 protected:
  ClientProgram() {
    auto input = std::move(os::make_input_channel().value());
    auto output = std::move(os::make_pipe().value());
    os::SpawnRequest request;
    request.command = {FIREBREAK_PARKING_CLIENT};
    request.environment = {{"LD_LIBRARY_PATH", FIREBREAK_STANDSTILL}};
    request.standard_input = input.theirs.get();
    request.standard_output = output.writing.get();
    request.die_with_parent = false;
    pid_ = kernel_.spawn(request).value();
    input_ = std::move(input.ours);
    output_ = std::move(output.reading);
  }
  /// Waits for it; empty: its output has ended.
  std::string read() {
    std::array<std::byte, 64> bytes;
    const std::size_t got = kernel_.read(output_, bytes).value_or(0);
    return {reinterpret_cast<const char*>(bytes.data()), got};
  }
  os::ExitStatus end() {
    for (;;) {
      if (auto ended = kernel_.try_wait(pid_).value()) return *ended;
    }
  }

  os::RealKernel kernel_;
  pid_t pid_ = 0;
  os::Fd input_, output_;
};

// The agent that started it was killed, say, while the driver holds it in its core dump.
TEST_F(ClientProgram, EndsWithItsInputWhereverItStandsStill) {
  ASSERT_TRUE(os::write_byte(input_, '\n'));
  ASSERT_EQ(read(), "still");
  input_.reset();
  EXPECT_TRUE(end().clean());
}

TEST_F(ClientProgram, IsNobodysClientBeforeItIsToldToBegin) {
  input_.reset();
  (void)end();
  EXPECT_EQ(read(), "");
}

}  // namespace
}  // namespace firebreak::park
