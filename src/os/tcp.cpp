// SPDX-License-Identifier: Apache-2.0
#include "os/tcp.h"

#include <fcntl.h>
#include <linux/sockios.h>
#include <linux/tcp.h>  // glibc's tcp_info ends before tcpi_bytes_acked
#include <netinet/in.h>
#include <sys/ioctl.h>
#include <sys/socket.h>

#include <cerrno>
#include <cstddef>

#include "os/errno_error.h"

namespace firebreak::os {
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
    if (errno == EAGAIN || errno == EWOULDBLOCK) return fail(ErrorCode::Timeout, "nobody waits");
    // A client that is gone again is none; the next one may be there.
    if (errno != EINTR && errno != ECONNABORTED) return fail_errno("accept", errno);
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

}  // namespace firebreak::os
