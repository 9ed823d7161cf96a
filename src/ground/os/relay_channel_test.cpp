// SPDX-License-Identifier: Apache-2.0
#include "ground/os/socket.h"

#include <fcntl.h>
#include <gtest/gtest.h>
#include <signal.h>

#include <array>
#include <string>
#include <thread>

#include "ground/os/event_loop.h"
#include "ground/os/real_kernel.h"
#include "ground/os/self.h"

namespace firebreak::os {
namespace {

const std::string text = "one\ntwo\r\n\x04\x11 end";

std::string read_all(const Fd& fd) {
  RealKernel kernel;
  std::string all;
  std::array<std::byte, 4096> buffer{};
  for (auto size = kernel.read(fd, buffer); size && *size > 0; size = kernel.read(fd, buffer)) {
    all.append(reinterpret_cast<const char*>(buffer.data()), *size);
  }
  return all;
}

void pass(RelayChannel channel) {
  EXPECT_EQ(read_all(channel.ours), "");
  ASSERT_TRUE(write_all(channel.theirs.get(), std::as_bytes(std::span(text))));
  channel.theirs.reset();
  EXPECT_EQ(read_all(channel.ours), text);
}

TEST(RelayChannel, APipePassesEveryByte) {
  const Fd file = RealKernel().open("/dev/null", O_RDWR).value();
  RelayChannel channel = channel_like(file.get()).value();
  EXPECT_FALSE(is_terminal(channel.theirs.get()));
  pass(std::move(channel));
}

TEST(RelayChannel, ATerminalIsOneAndPassesEveryByte) {
  // The test takes any terminal; a machine that has none to offer has none to relay.
  const Fd outer = RealKernel().open("/dev/ptmx", O_RDWR | O_NOCTTY).value();
  ASSERT_TRUE(is_terminal(outer.get()));
  RelayChannel channel = channel_like(outer.get()).value();
  EXPECT_TRUE(is_terminal(channel.theirs.get()));
  pass(std::move(channel));
}

TEST(RelayChannel, WritingWaitsForTheReader) {
  RelayChannel channel = channel_like(RealKernel().open("/dev/null", O_RDWR).value().get()).value();
  const std::string much(1 << 20, 'x');
  std::thread writer([&] {
    EXPECT_TRUE(write_all(channel.theirs.get(), std::as_bytes(std::span(much))));
    channel.theirs.reset();
  });
  RealKernel kernel;
  std::size_t read = 0;
  while (read < much.size()) {
    const int fd = channel.ours.get();
    ASSERT_FALSE(kernel.poll(std::span(&fd, 1), std::chrono::seconds(30)).value().empty());
    read += read_all(channel.ours).size();
  }
  writer.join();
  EXPECT_EQ(read, much.size());
}

TEST(RelayChannel, AReaderThatIsGoneIsAnError) {
  ASSERT_TRUE(hold_signals({SIGPIPE}));
  RelayChannel channel = channel_like(RealKernel().open("/dev/null", O_RDWR).value().get()).value();
  channel.ours.reset();
  const Status written = write_all(channel.theirs.get(), std::as_bytes(std::span(text)));
  ASSERT_FALSE(written);
  EXPECT_EQ(written.error().code, ErrorCode::Protocol);
}

}  // namespace
}  // namespace firebreak::os
