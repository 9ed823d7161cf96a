// SPDX-License-Identifier: Apache-2.0
#include "ground/os/socket.h"

#include <fcntl.h>
#include <gmock/gmock.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <unistd.h>

#include <filesystem>
#include <fstream>
#include <set>

#include "ground/os/file.h"
#include "ground/os/memory.h"

namespace firebreak::os {
namespace {

using testing::HasSubstr;

constexpr Milliseconds long_enough{20'000};
constexpr Milliseconds now{0};

std::span<const std::byte> bytes_of(std::string_view text) { return std::as_bytes(std::span(text)); }
std::string text_of(const Message& message) {
  return std::string(reinterpret_cast<const char*>(message.bytes.data()), message.bytes.size());
}

class SocketTest : public testing::Test {
 protected:
  SocketTest() : directory_(TemporaryDirectory::create().value()), path_(directory_.path() + "/s") {}

  TemporaryDirectory directory_;
  std::string path_;
};

TEST_F(SocketTest, CarriesWholeMessagesBothWays) {
  Listener listener = Listener::listen(path_, SocketAccess::Owner).value();
  Socket client = connect(path_, long_enough).value();
  Socket server = listener.accept(long_enough).value();
  ASSERT_TRUE(client.send(bytes_of("one"), {}, now));
  ASSERT_TRUE(client.send(bytes_of("two"), {}, now));
  EXPECT_EQ(text_of(server.receive(long_enough).value()), "one");
  EXPECT_EQ(text_of(server.receive(long_enough).value()), "two");
  ASSERT_TRUE(server.send(bytes_of("three"), {}, now));
  EXPECT_EQ(text_of(client.receive(long_enough).value()), "three");
}

TEST_F(SocketTest, CarriesAsManyDescriptorsAsPromised) {
  auto [left, right] = socket_pair().value();
  const Fd file = memory_file_with("content").value();
  const std::vector<int> numbers(most_descriptors_in_a_message, file.get());
  ASSERT_TRUE(left.send(bytes_of("x"), numbers, now));
  const Message message = right.receive(long_enough).value();
  ASSERT_EQ(message.descriptors.size(), most_descriptors_in_a_message);
  std::set<int> different;
  for (const Fd& fd : message.descriptors) {
    EXPECT_EQ(content_of(fd.get()).value(), "content");
    EXPECT_NE(::fcntl(fd.get(), F_GETFD) & FD_CLOEXEC, 0);
    different.insert(fd.get());
  }
  EXPECT_EQ(different.size(), most_descriptors_in_a_message);
}

TEST_F(SocketTest, RefusesTooMuchAndNothing) {
  auto [left, right] = socket_pair().value();
  const std::vector<int> too_many(most_descriptors_in_a_message + 1, 0);
  EXPECT_EQ(left.send(bytes_of("x"), too_many, now).error().code, ErrorCode::InvalidArgument);
  EXPECT_EQ(left.send({}, {}, now).error().code, ErrorCode::InvalidArgument);
  const std::vector<std::byte> large(most_bytes_in_a_message + 1);
  EXPECT_EQ(left.send(large, {}, now).error().code, ErrorCode::InvalidArgument);
}

TEST_F(SocketTest, AMessageLongerThanAllowedIsAProtocolErrorAndLeaksNothing) {
  auto [left, right] = socket_pair().value();
  const Fd file = memory_file_with("x").value();
  const std::vector<std::byte> large(most_bytes_in_a_message + 1);
  // Around our own send(), as a hostile peer would.
  iovec part{const_cast<std::byte*>(large.data()), large.size()};
  msghdr header{};
  header.msg_iov = &part;
  header.msg_iovlen = 1;
  ASSERT_GT(::sendmsg(left.fd().get(), &header, 0), 0);
  EXPECT_EQ(right.receive(long_enough).error().code, ErrorCode::Protocol);
  ASSERT_TRUE(left.send(bytes_of("still works"), {}, now));
  EXPECT_EQ(text_of(right.receive(long_enough).value()), "still works");
}

TEST_F(SocketTest, TellsAGonePeerFromASilentOne) {
  auto [left, right] = socket_pair().value();
  EXPECT_EQ(right.receive(now).error().code, ErrorCode::Timeout);
  left.release().reset();
  EXPECT_EQ(right.receive(long_enough).error().code, ErrorCode::Unavailable);
  EXPECT_EQ(right.send(bytes_of("x"), {}, now).error().code, ErrorCode::Unavailable);
}

TEST_F(SocketTest, ReadsWhatAGonePeerStillSaid) {
  auto [left, right] = socket_pair().value();
  ASSERT_TRUE(left.send(bytes_of("last words"), {}, now));
  left.release().reset();
  EXPECT_EQ(text_of(right.receive(long_enough).value()), "last words");
  EXPECT_EQ(right.receive(long_enough).error().code, ErrorCode::Unavailable);
}

TEST_F(SocketTest, SendingToAPeerThatDoesNotReadIsBounded) {
  auto [left, right] = socket_pair().value();
  const std::vector<std::byte> chunk(32 * 1024);
  Status sent;
  for (int i = 0; i < 1000 && sent; ++i) sent = left.send(chunk, {}, Milliseconds(1));
  ASSERT_FALSE(sent);
  EXPECT_EQ(sent.error().code, ErrorCode::Timeout);
}

TEST_F(SocketTest, KnowsWhoIsAtTheOtherEnd) {
  Listener listener = Listener::listen(path_, SocketAccess::Owner).value();
  const Socket client = connect(path_, long_enough).value();
  const Socket server = listener.accept(long_enough).value();
  const PeerCredentials peer = server.peer_credentials().value();
  EXPECT_EQ(peer.pid, ::getpid());
  EXPECT_EQ(peer.uid, ::getuid());
  EXPECT_EQ(peer.gid, ::getgid());
}

TEST_F(SocketTest, HasTheModeThatWasAskedFor) {
  struct stat info {};
  {
    const Listener owner = Listener::listen(path_, SocketAccess::Owner).value();
    ASSERT_EQ(::stat(path_.c_str(), &info), 0);
    EXPECT_EQ(info.st_mode & 0777, 0600u);
  }
  const Listener group = Listener::listen(path_, SocketAccess::Group).value();
  ASSERT_EQ(::stat(path_.c_str(), &info), 0);
  EXPECT_EQ(info.st_mode & 0777, 0660u);
}

TEST_F(SocketTest, RemovesItsPathAtTheEnd) {
  { const Listener listener = Listener::listen(path_, SocketAccess::Owner).value(); }
  EXPECT_FALSE(std::filesystem::exists(path_));
}

TEST_F(SocketTest, LeavesASuccessorsPathAlone) {
  auto first = std::make_unique<Listener>(Listener::listen(path_, SocketAccess::Owner).value());
  ASSERT_EQ(::unlink(path_.c_str()), 0);
  const Listener second = Listener::listen(path_, SocketAccess::Owner).value();
  first.reset();
  EXPECT_TRUE(std::filesystem::exists(path_));
  EXPECT_TRUE(connect(path_, long_enough));
}

TEST_F(SocketTest, ReplacesAStaleSocketButNotALivingOne) {
  {
    Listener dead = Listener::listen(path_, SocketAccess::Owner).value();
    std::filesystem::rename(path_, path_ + ".kept");
  }
  std::filesystem::rename(path_ + ".kept", path_);
  const Listener listener = Listener::listen(path_, SocketAccess::Owner).value();
  const auto second = Listener::listen(path_, SocketAccess::Owner);
  ASSERT_FALSE(second);
  EXPECT_THAT(second.error().message, HasSubstr("somebody already listens"));
  EXPECT_TRUE(connect(path_, long_enough));
}

TEST_F(SocketTest, NeverReplacesAnotherKindOfFile) {
  std::ofstream(path_) << "precious";
  EXPECT_EQ(Listener::listen(path_, SocketAccess::Owner).error().code, ErrorCode::InvalidArgument);
  EXPECT_EQ(std::filesystem::file_size(path_), 8u);
}

TEST_F(SocketTest, ATooLongPathIsOneClearLine) {
  const std::string path = directory_.path() + "/" + std::string(120, 'x');
  for (const Status& status :
       {check_socket_path(path),
        Status(Listener::listen(path, SocketAccess::Owner).map([](const Listener&) {}))}) {
    ASSERT_FALSE(status);
    EXPECT_EQ(status.error().code, ErrorCode::InvalidArgument);
    EXPECT_THAT(to_string(status.error()), HasSubstr("107 is the limit"));
  }
  EXPECT_FALSE(connect(path, now));
  EXPECT_FALSE(check_socket_path(""));
  EXPECT_TRUE(check_socket_path(std::string(107, 'x')));
  EXPECT_FALSE(check_socket_path(std::string(108, 'x')));
}

TEST_F(SocketTest, ConnectingToNobodyFailsAtOnce) {
  EXPECT_EQ(connect(path_, long_enough).error().code, ErrorCode::NotFound);
  {
    Listener dead = Listener::listen(path_, SocketAccess::Owner).value();
    std::filesystem::rename(path_, path_ + ".kept");
  }
  EXPECT_EQ(connect(path_ + ".kept", long_enough).error().code, ErrorCode::Unavailable);
}

TEST_F(SocketTest, ConnectingToAFullListenerIsBounded) {
  const Listener listener = Listener::listen(path_, SocketAccess::Owner).value();
  std::vector<Socket> waiting;
  Result<Socket> last = connect(path_, Milliseconds(1));
  for (int i = 0; i < 1000 && last; ++i) {
    waiting.push_back(std::move(*last));
    last = connect(path_, Milliseconds(1));
  }
  ASSERT_FALSE(last);
  EXPECT_EQ(last.error().code, ErrorCode::Timeout);
}

TEST_F(SocketTest, HundredsMayConnectBeforeTheFirstIsAccepted) {
  const Listener listener = Listener::listen(path_, SocketAccess::Owner).value();
  std::vector<Socket> waiting;
  for (int i = 0; i < 400; ++i) {
    auto socket = connect(path_, Milliseconds(1));
    ASSERT_TRUE(socket) << i;
    waiting.push_back(std::move(*socket));
  }
}

TEST_F(SocketTest, AcceptingIsBounded) {
  Listener listener = Listener::listen(path_, SocketAccess::Owner).value();
  EXPECT_EQ(listener.accept(Milliseconds(1)).error().code, ErrorCode::Timeout);
}

}  // namespace
}  // namespace firebreak::os
