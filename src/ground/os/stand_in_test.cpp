// SPDX-License-Identifier: Apache-2.0
#include "ground/os/stand_in.h"

#include <gmock/gmock.h>
#include <poll.h>
#include <sys/socket.h>
#include <unistd.h>

#include <cstring>

#include "ground/os/memory.h"
#include "ground/os/socket.h"

namespace firebreak::os {
namespace {

using testing::Contains;
using testing::Pair;

TEST(StandIn, ADescriptorIsClosedAndNothingComesFromItsNumber) {
  std::array<int, 2> pipe{};
  ASSERT_EQ(::pipe(pipe.data()), 0);
  const Fd reader(pipe[0]);
  const Fd writer(pipe[1]);
  const auto socket = make_quiet_socket();
  ASSERT_TRUE(socket);
  ASSERT_TRUE(stand_in_for_descriptor(*socket, reader.get()));
  pollfd broken{writer.get(), POLLOUT, 0};
  EXPECT_EQ(::poll(&broken, 1, 0), 1);
  EXPECT_NE(broken.revents & POLLERR, 0) << "somebody still has the pipe's other end";
  pollfd quiet{reader.get(), POLLIN, 0};
  EXPECT_EQ(::poll(&quiet, 1, 0), 0);
}

TEST(StandIn, MemoryOfAFileBecomesZerosThatReachNobody) {
  const auto file = create_memory_file("firebreak-stand-in", page_size());
  auto mine = Mapping::of_file(file->get(), page_size(), Protection::ReadWrite);
  auto seen = Mapping::of_file(file->get(), page_size(), Protection::ReadWrite);
  std::memset(mine->data(), 7, page_size());
  const auto begin = reinterpret_cast<std::uint64_t>(mine->data());
  const auto is_it = [&](const NamedRegion& region) {
    return region.range == AddressRange{begin, begin + page_size()} &&
           region.name == memory_file_link("firebreak-stand-in");
  };
  EXPECT_THAT(named_regions(), Contains(testing::Truly(is_it)));
  ASSERT_TRUE(stand_in_for_region({begin, begin + page_size()}));
  EXPECT_EQ(*mine->as<char>(), 0);
  *mine->as<char>() = 9;
  EXPECT_EQ(*seen->as<char>(), 7);
  EXPECT_THAT(named_regions(), testing::Not(Contains(testing::Truly(is_it))));
}

TEST(StandIn, LinesThatAreNoneAreLeftOut) {
  const auto regions =
      parse_named_regions("10-20 rw-p 0 00:01 5  /dev/nvidia0\nnonsense\n30-20 rw-p\n40-50 r--p 0 00:00 0 ");
  ASSERT_EQ(regions.size(), 2U);
  EXPECT_EQ(regions[0].name, "/dev/nvidia0");
  EXPECT_EQ(regions[0].range, (AddressRange{0x10, 0x20}));
  EXPECT_EQ(regions[1].name, "");
}

TEST(StandIn, ASocketSaysWhomItIsConnectedTo) {
  const auto folder = TemporaryDirectory::create().value();
  const std::string path = folder.path() + "/control";
  auto listener = Listener::listen(path, SocketAccess::Owner);
  ASSERT_TRUE(listener);
  auto socket = connect(path, Milliseconds(1000));
  ASSERT_TRUE(socket);
  EXPECT_EQ(socket_names(socket->fd().get()).peer, path);
  EXPECT_EQ(socket_names(socket->fd().get()).name, "");
  EXPECT_EQ(socket_names(0).peer, "");
  EXPECT_THAT(named_descriptors(), Contains(Pair(socket->fd().get(), testing::HasSubstr("socket:"))));
}

}  // namespace
}  // namespace firebreak::os
