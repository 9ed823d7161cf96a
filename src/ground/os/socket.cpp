// SPDX-License-Identifier: Apache-2.0
#include "ground/os/socket.h"

#include <fcntl.h>
#include <linux/sockios.h>
#include <linux/tcp.h>  // glibc's tcp_info ends before tcpi_bytes_acked
#include <netinet/in.h>
#include <poll.h>
#include <stdlib.h>
#include <sys/ioctl.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/un.h>
#include <unistd.h>
#include <algorithm>
#include <array>
#include <cerrno>
#include <cstddef>
#include <cstring>

#include "ground/os/event_loop.h"
#include "ground/os/fd.h"
#include "ground/os/file.h"

namespace firebreak::os {

// --- socket

namespace {

/// A listener may take seconds to accept a hundred pairs that start at once.
constexpr int listen_backlog = 512;
/// Linux does not say when fewer descriptors are under way.
constexpr Milliseconds descriptors_pause{1};
/// Largest number of messages that are taken off before a socket is closed; more are not to keep anybody.
constexpr int most_messages_to_take_off = 16;

sockaddr_un address_of(const std::string& path) {
  sockaddr_un address{};
  address.sun_family = AF_UNIX;
  std::memcpy(address.sun_path, path.c_str(), path.size() + 1);
  return address;
}

int bind_to(const Fd& fd, const std::string& path) {
  const sockaddr_un address = address_of(path);
  return ::bind(fd.get(), reinterpret_cast<const sockaddr*>(&address), sizeof(address));
}

int connect_to(const Fd& fd, const std::string& path) {
  const sockaddr_un address = address_of(path);
  return ::connect(fd.get(), reinterpret_cast<const sockaddr*>(&address), sizeof(address));
}

Result<Fd> new_socket(int flags) {
  Fd fd(::socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC | flags, 0));
  if (!fd) return fail_errno("make a socket", errno);
  return fd;
}

/// Takes a socket away that nobody listens on; anything else at that path stays and is an error.
Status remove_stale(const std::string& path) {
  struct stat info {};
  if (::lstat(path.c_str(), &info) != 0) return fail_errno("look at " + path, errno);
  if (!S_ISSOCK(info.st_mode)) {
    return fail(ErrorCode::InvalidArgument, path + " is there and is not a socket", "choose another path");
  }
  Result<Fd> probe = new_socket(SOCK_NONBLOCK);
  if (!probe) return propagate(probe);
  if (connect_to(*probe, path) == 0 || errno != ECONNREFUSED) {
    return fail(ErrorCode::InvalidArgument, "somebody already listens on " + path,
                "stop the other one or choose another path");
  }
  if (::unlink(path.c_str()) != 0) return fail_errno("remove the stale socket " + path, errno);
  return {};
}

Status bind_replacing_stale(const Fd& fd, const std::string& path) {
  if (bind_to(fd, path) == 0) return {};
  if (errno != EADDRINUSE) return fail_errno("make the socket " + path, errno);
  if (Status removed = remove_stale(path); !removed) return removed;
  if (bind_to(fd, path) != 0) return fail_errno("make the socket " + path, errno);
  return {};
}

/// Linux's SCM_MAX_FD. What has no room when it comes Linux closes at once, on the receiving thread.
constexpr std::size_t most_descriptors_to_come = 253;

/// Room for the largest number of descriptors, aligned as control messages must be.
struct alignas(cmsghdr) ControlBuffer {
  std::array<std::byte, CMSG_SPACE(sizeof(int) * most_descriptors_to_come) + CMSG_SPACE(sizeof(ucred))>
      bytes{};
};

void attach(msghdr& header, ControlBuffer& control, std::span<const int> descriptors) {
  if (descriptors.empty()) return;
  header.msg_control = control.bytes.data();
  header.msg_controllen = CMSG_SPACE(descriptors.size_bytes());
  cmsghdr* item = CMSG_FIRSTHDR(&header);
  item->cmsg_level = SOL_SOCKET;
  item->cmsg_type = SCM_RIGHTS;
  item->cmsg_len = CMSG_LEN(descriptors.size_bytes());
  std::memcpy(CMSG_DATA(item), descriptors.data(), descriptors.size_bytes());
}

/// Owns every descriptor that arrived before anything else is looked at, so that none leaks.
std::vector<Fd> take_descriptors(msghdr& header, const std::shared_ptr<Closer>& closer) {
  std::vector<Fd> descriptors;
  for (cmsghdr* item = CMSG_FIRSTHDR(&header); item != nullptr; item = CMSG_NXTHDR(&header, item)) {
    if (item->cmsg_level != SOL_SOCKET || item->cmsg_type != SCM_RIGHTS) continue;
    const std::size_t count = (item->cmsg_len - CMSG_LEN(0)) / sizeof(int);
    for (std::size_t i = 0; i < count; ++i) {
      int number = -1;
      std::memcpy(&number, CMSG_DATA(item) + i * sizeof(int), sizeof(int));
      descriptors.emplace_back(number).close_by(closer);
    }
  }
  return descriptors;
}

/// 0: it is not said.
pid_t sender_in(msghdr& header) {
  ucred sender{};
  for (cmsghdr* item = CMSG_FIRSTHDR(&header); item != nullptr; item = CMSG_NXTHDR(&header, item)) {
    if (item->cmsg_level == SOL_SOCKET && item->cmsg_type == SCM_CREDENTIALS)
      std::memcpy(&sender, CMSG_DATA(item), sizeof(sender));
  }
  return sender.pid;
}

tl::unexpected<Error> peer_is_gone() {
  return fail(ErrorCode::Unavailable, "the other end closed the connection");
}

}  // namespace

Status check_socket_path(const std::string& path) {
  const std::size_t most = sizeof(sockaddr_un{}.sun_path) - 1;
  if (path.empty()) return fail(ErrorCode::InvalidArgument, "the socket path is empty");
  if (path.size() > most) {
    return fail(ErrorCode::InvalidArgument,
                "the socket path " + path + " has " + std::to_string(path.size()) + " bytes, " +
                    std::to_string(most) + " is the limit",
                "choose a shorter directory");
  }
  return {};
}

Result<Socket> bind_datagrams(const std::string& path) {
  if (Status good = check_socket_path(path); !good) return propagate(good);
  Fd fd(::socket(AF_UNIX, SOCK_DGRAM | SOCK_CLOEXEC, 0));
  if (!fd) return fail_errno("make a socket", errno);
  if (Status removed = remove_file(path); !removed) return propagate(removed);
  if (bind_to(fd, path) != 0) return fail_errno("make the socket " + path, errno);
  if (::chmod(path.c_str(), S_IRUSR | S_IWUSR) != 0) return fail_errno("protect " + path, errno);
  return Socket(std::move(fd));
}

Status send_datagram(const std::string& path, const std::string& text) {
  if (Status good = check_socket_path(path); !good) return good;
  const Fd fd(::socket(AF_UNIX, SOCK_DGRAM | SOCK_CLOEXEC, 0));
  if (!fd) return fail_errno("make a socket", errno);
  sockaddr_un address = address_of(path);
  const bool is_abstract = path.front() == '@';
  if (is_abstract) address.sun_path[0] = 0;
  const std::size_t size = offsetof(sockaddr_un, sun_path) + path.size() + (is_abstract ? 0 : 1);
  const ssize_t sent = ::sendto(fd.get(), text.data(), text.size(), MSG_NOSIGNAL | MSG_DONTWAIT,
                                reinterpret_cast<const sockaddr*>(&address), static_cast<socklen_t>(size));
  return sent < 0 ? Status(fail_errno("send to " + path, errno)) : Status();
}

Status Socket::send(std::span<const std::byte> bytes, std::span<const int> descriptors,
                    Milliseconds timeout) {
  if (bytes.empty() || bytes.size() > most_bytes_in_a_message) {
    return fail(ErrorCode::InvalidArgument, "a message of " + std::to_string(bytes.size()) + " bytes");
  }
  if (descriptors.size() > most_descriptors_in_a_message) {
    return fail(ErrorCode::InvalidArgument,
                "a message with " + std::to_string(descriptors.size()) + " descriptors");
  }
  iovec part{const_cast<std::byte*>(bytes.data()), bytes.size()};
  msghdr header{};
  header.msg_iov = &part;
  header.msg_iovlen = 1;
  ControlBuffer control;
  attach(header, control, descriptors);
  const auto begun = std::chrono::steady_clock::now();
  while (true) {
    if (::sendmsg(fd_.get(), &header, MSG_NOSIGNAL | MSG_DONTWAIT) >= 0) return {};
    if (errno == EINTR) continue;
    if (errno == EPIPE || errno == ECONNRESET || errno == ENOTCONN) return peer_is_gone();
    if (errno == ETOOMANYREFS) {
      const bool is_late = timeout >= Milliseconds(0) && std::chrono::steady_clock::now() - begun >= timeout;
      if (is_late)
        return fail(ErrorCode::ResourceExhausted, "too many descriptors are under way between processes");
      (void)poll_readable({}, descriptors_pause);
      continue;
    }
    if (errno != EAGAIN) return fail_errno("send a message", errno);
    const Result<bool> writable = poll_writable(fd_.get(), timeout);
    if (!writable) return propagate(writable);
    if (!*writable) return fail(ErrorCode::Timeout, "the other end does not read its messages");
  }
}

Status Socket::ask_who_sends() {
  const int on = 1;
  if (::setsockopt(fd_.get(), SOL_SOCKET, SO_PASSCRED, &on, sizeof on) == 0) return {};
  return fail_errno("ask who sends", errno);
}

Result<Message> Socket::receive(Milliseconds timeout) {
  const int number = fd_.get();
  const auto ready = poll_readable(std::span(&number, 1), timeout);
  if (!ready) return propagate(ready);
  if (ready->empty()) return fail(ErrorCode::Timeout, "no message came in time");

  Message message;
  message.bytes.resize(most_bytes_in_a_message);
  iovec part{message.bytes.data(), message.bytes.size()};
  ControlBuffer control;
  msghdr header{};
  header.msg_iov = &part;
  header.msg_iovlen = 1;
  header.msg_control = control.bytes.data();
  header.msg_controllen = control.bytes.size();
  ssize_t size = -1;
  do {
    size = ::recvmsg(number, &header, MSG_CMSG_CLOEXEC | MSG_DONTWAIT);
  } while (size < 0 && errno == EINTR);
  if (size < 0 && errno == ECONNRESET) return peer_is_gone();
  if (size < 0 && errno == EAGAIN) return fail(ErrorCode::Timeout, "no message came in time");
  if (size < 0) return fail_errno("receive a message", errno);

  message.descriptors = take_descriptors(header, fd_.closer());
  message.sender = sender_in(header);
  if (size == 0) return peer_is_gone();
  if ((header.msg_flags & MSG_TRUNC) != 0)
    return fail(ErrorCode::Protocol, "a message is longer than allowed");
  if ((header.msg_flags & MSG_CTRUNC) != 0)
    return fail(ErrorCode::Protocol, "a message lost its descriptors");
  if (message.descriptors.size() > most_descriptors_in_a_message)
    return fail(ErrorCode::Protocol, "a message has more descriptors than allowed");
  message.bytes.resize(static_cast<std::size_t>(size));
  return message;
}

void Socket::hang_up() { ::shutdown(fd_.get(), SHUT_RDWR); }

void Socket::hang_up_for_good() {
  hang_up();
  if (take_off_what_came()) fd_.close_by({});
}

/// False: some of it may have descriptors with it, whose last close() takes as long as others like. Linux
/// says so of a message that is looked at without room for them, and closes none. It says who sent it where
/// it is asked to, so an empty message is not taken for the end.
bool Socket::take_off_what_came() {
  const int on = 1;
  if (::setsockopt(fd_.get(), SOL_SOCKET, SO_PASSCRED, &on, sizeof on) != 0) return false;
  for (int i = 0; i < most_messages_to_take_off; ++i) {
    alignas(cmsghdr) std::array<std::byte, CMSG_SPACE(sizeof(ucred))> sender{};
    msghdr header{};
    header.msg_control = sender.data();
    header.msg_controllen = sender.size();
    const ssize_t size = ::recvmsg(fd_.get(), &header, MSG_PEEK | MSG_DONTWAIT);
    if (size < 0) return false;
    if (header.msg_controllen == 0) return true;
    if ((header.msg_flags & MSG_CTRUNC) != 0) return false;
    if (::recvmsg(fd_.get(), &header, MSG_DONTWAIT) < 0) return false;
  }
  return false;
}

Result<PeerCredentials> Socket::peer_credentials() const {
  ucred credentials{};
  socklen_t size = sizeof(credentials);
  if (::getsockopt(fd_.get(), SOL_SOCKET, SO_PEERCRED, &credentials, &size) != 0) {
    return fail_errno("ask who is at the other end", errno);
  }
  return PeerCredentials{credentials.pid, credentials.uid, credentials.gid};
}

Result<Fd> Socket::peer_process() const {
  constexpr int peer_pidfd = 77;  // SO_PEERPIDFD is not named by older headers
  int number = -1;
  socklen_t size = sizeof(number);
  if (::getsockopt(fd_.get(), SOL_SOCKET, peer_pidfd, &number, &size) == 0) return Fd(number);
  if (errno != ENOPROTOOPT && errno != EINVAL) return fail(ErrorCode::NotFound, "the peer's process is gone");
  const auto peer = peer_credentials();
  if (!peer) return propagate(peer);
  Fd process(static_cast<int>(::syscall(SYS_pidfd_open, peer->pid, 0)));
  if (process) return process;
  return fail(ErrorCode::NotFound, "the peer's process is gone");
}

Result<Listener> Listener::listen(const std::string& path, SocketAccess access, SocketGroup group) {
  if (Status fits = check_socket_path(path); !fits) return propagate(fits);
  Result<Fd> fd = new_socket(SOCK_NONBLOCK);
  if (!fd) return propagate(fd);
  if (Status bound = bind_replacing_stale(*fd, path); !bound) return propagate(bound);
  struct stat info {};
  // Nobody can connect before listen(), so group and mode are right from the first connection on.
  if (group && ::lchown(path.c_str(), static_cast<uid_t>(-1), *group) != 0)
    return fail_errno("give " + path + " to its group", errno);
  if (::lstat(path.c_str(), &info) != 0 ||
      ::chmod(path.c_str(), access == SocketAccess::Owner ? 0600 : 0660) != 0) {
    return fail_errno("set the mode of " + path, errno);
  }
  Listener listener(std::move(*fd), path, info.st_dev, info.st_ino);
  if (::listen(listener.fd_.get(), listen_backlog) != 0) return fail_errno("listen on " + path, errno);
  return listener;
}

Listener::Listener(Listener&& other) noexcept
    : fd_(std::move(other.fd_)),
      path_(std::exchange(other.path_, {})),
      device_(other.device_),
      inode_(other.inode_) {}

Listener& Listener::operator=(Listener&& other) noexcept {
  if (this != &other) {
    close();
    fd_ = std::move(other.fd_);
    path_ = std::exchange(other.path_, {});
    device_ = other.device_;
    inode_ = other.inode_;
  }
  return *this;
}

bool Listener::is_there() const {
  struct stat info {};
  return ::lstat(path_.c_str(), &info) == 0 && info.st_dev == device_ && info.st_ino == inode_;
}

void Listener::close() {
  fd_.reset();
  if (path_.empty()) return;
  if (is_there()) ::unlink(path_.c_str());
  path_.clear();
}

Result<Socket> Listener::accept(Milliseconds timeout) {
  const int number = fd_.get();
  const auto ready = poll_readable(std::span(&number, 1), timeout);
  if (!ready) return propagate(ready);
  Fd connection(ready->empty() ? -1 : ::accept4(number, nullptr, nullptr, SOCK_CLOEXEC | SOCK_NONBLOCK));
  if (connection) return Socket(std::move(connection));
  // A peer may have gone between poll and accept.
  const bool nobody = ready->empty() || errno == EAGAIN || errno == ECONNABORTED || errno == EINTR;
  if (nobody) return fail(ErrorCode::Timeout, "nobody connected in time");
  return fail_errno("accept a connection on " + path_, errno);
}

Result<Socket> connect(const std::string& path, Milliseconds timeout) {
  if (Status fits = check_socket_path(path); !fits) return propagate(fits);
  Result<Fd> fd = new_socket(0);
  if (!fd) return propagate(fd);
  // A full backlog makes the kernel wait as long as the send timeout says; a zero would mean for ever.
  const std::int64_t limit_ms = std::max<std::int64_t>(timeout.count(), 1);
  const timeval limit{static_cast<time_t>(limit_ms / 1000), static_cast<suseconds_t>(limit_ms % 1000 * 1000)};
  ::setsockopt(fd->get(), SOL_SOCKET, SO_SNDTIMEO, &limit, sizeof(limit));
  if (connect_to(*fd, path) != 0) {
    if (errno == EAGAIN) return fail(ErrorCode::Timeout, "nobody accepts connections on " + path);
    if (errno == ECONNREFUSED) return fail(ErrorCode::Unavailable, "nobody listens on " + path);
    return fail_errno("connect to " + path, errno);
  }
  if (::fcntl(fd->get(), F_SETFL, O_NONBLOCK) != 0) return fail_errno("set up a connection", errno);
  return Socket(std::move(*fd));
}

Result<std::pair<Socket, Socket>> socket_pair() {
  std::array<int, 2> ends{};
  if (::socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC | SOCK_NONBLOCK, 0, ends.data()) != 0) {
    return fail_errno("make a pair of sockets", errno);
  }
  return std::pair(Socket(Fd(ends[0])), Socket(Fd(ends[1])));
}

Result<std::pair<Socket, Fd>> child_stream() {
  auto ends = socket_pair();
  if (!ends) return propagate(ends);
  Fd theirs = ends->second.release();
  if (::fcntl(theirs.get(), F_SETFL, 0) != 0) return fail_errno("set up a child's stream", errno);
  return std::pair(std::move(ends->first), std::move(theirs));
}

// --- tcp

namespace {

Result<std::uint64_t> bytes_acknowledged(int connection) {
  ::tcp_info info{};
  socklen_t size = sizeof info;
  if (::getsockopt(connection, IPPROTO_TCP, TCP_INFO, &info, &size) != 0) {
    return fail(ErrorCode::InvalidArgument, "that is no TCP connection");
  }
  if (size < offsetof(::tcp_info, tcpi_bytes_acked) + sizeof info.tcpi_bytes_acked) {
    return fail(ErrorCode::Unsupported, "this Linux does not count a connection's bytes");
  }
  return info.tcpi_bytes_acked;
}

}  // namespace

Result<Fd> accept_waiting(int listener) {
  const int flags = ::fcntl(listener, F_GETFL);
  if (flags < 0) return fail_errno("accept", errno);
  if ((flags & O_NONBLOCK) == 0 && ::fcntl(listener, F_SETFL, flags | O_NONBLOCK) != 0)
    return fail_errno("accept", errno);
  for (;;) {
    Fd accepted(::accept4(listener, nullptr, nullptr, SOCK_CLOEXEC));
    if (accepted) return accepted;
    const bool nobody = errno == EAGAIN || errno == EWOULDBLOCK || errno == EINTR;
    if (nobody) return fail(ErrorCode::Timeout, "nobody waits");
    // A client that is gone again is none; the next one may be there.
    if (errno != ECONNABORTED) return fail_errno("accept", errno);
  }
}

bool is_tcp_listener(int descriptor) {
  int protocol = 0, listens = 0;
  socklen_t size = sizeof protocol;
  if (::getsockopt(descriptor, SOL_SOCKET, SO_PROTOCOL, &protocol, &size) != 0) return false;
  size = sizeof listens;
  if (::getsockopt(descriptor, SOL_SOCKET, SO_ACCEPTCONN, &listens, &size) != 0) return false;
  return protocol == IPPROTO_TCP && listens != 0;
}

Result<std::uint64_t> bytes_taken(int connection) {
  auto acknowledged = bytes_acknowledged(connection);
  for (;;) {
    if (!acknowledged) return acknowledged;
    int queued = 0;
    if (::ioctl(connection, SIOCOUTQ, &queued) != 0) return fail_errno("SIOCOUTQ", errno);
    const auto again = bytes_acknowledged(connection);
    if (again && *again == *acknowledged) return *acknowledged + static_cast<std::uint64_t>(queued);
    acknowledged = again;  // the peer acknowledged in between
  }
}

Result<std::size_t> send_waiting(int connection, std::span<const std::byte> bytes) {
  if (bytes.empty()) return std::size_t{0};
  for (;;) {
    const ssize_t sent = ::send(connection, bytes.data(), bytes.size(), MSG_DONTWAIT | MSG_NOSIGNAL);
    if (sent >= 0) return static_cast<std::size_t>(sent);
    if (errno == EAGAIN || errno == EWOULDBLOCK) return std::size_t{0};
    if (errno == EPIPE || errno == ECONNRESET || errno == ETIMEDOUT || errno == ENOTCONN)
      return fail(ErrorCode::Unavailable, "the client is gone");
    if (errno != EINTR) return fail_errno("send", errno);
  }
}

// --- stream

Result<Fd> connect_stream(const std::string& path) {
  if (Status fits = check_socket_path(path); !fits) return propagate(fits);
  Fd fd(::socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0));
  if (!fd) return fail_errno("make a socket", errno);
  if (connect_to(fd, path) == 0) return fd;
  if (errno == ECONNREFUSED) return fail(ErrorCode::Unavailable, "nobody listens on " + path);
  return fail_errno("connect to " + path, errno);
}

Result<std::string> read_waiting(int connection, std::size_t most_bytes) {
  std::string bytes(most_bytes, '\0');
  for (;;) {
    const ssize_t size = ::recv(connection, bytes.data(), bytes.size(), MSG_DONTWAIT);
    if (size > 0) {
      bytes.resize(static_cast<std::size_t>(size));
      return bytes;
    }
    if (size == 0 || errno == ECONNRESET) return peer_is_gone();
    if (errno == EAGAIN || errno == EWOULDBLOCK) return std::string();
    if (errno != EINTR) return fail_errno("receive", errno);
  }
}

// --- half close

Result<InputChannel> make_input_channel() {
  std::array<int, 2> ends{};
  if (::socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, ends.data()) != 0)
    return fail_errno("make a channel for a child's input", errno);
  return InputChannel{Fd(ends[0]), Fd(ends[1])};
}

void wait_for_end_of_input(int input) {
  pollfd end{input, 0, 0};
  while (::poll(&end, 1, -1) < 0 && errno == EINTR) {
  }
}

Status write_byte(const Fd& input, char byte) {
  if (::send(input.get(), &byte, 1, MSG_DONTWAIT | MSG_NOSIGNAL) == 1) return {};
  return fail_errno("write to a child's input", errno);
}

void end_sending(const Socket& socket) { ::shutdown(socket.fd().get(), SHUT_WR); }

}  // namespace firebreak::os
