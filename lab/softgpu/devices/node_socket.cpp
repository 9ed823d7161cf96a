// SPDX-License-Identifier: Apache-2.0
#include "softgpu/devices/node_socket.h"

#include <fcntl.h>
#include <linux/sockios.h>
#include <poll.h>
#include <sys/ioctl.h>
#include <sys/socket.h>
#include <sys/stat.h>

#include <array>
#include <cerrno>

#include "ground/os/fd.h"

namespace firebreak::softgpu {

Result<NodeSocket> NodeSocket::open(int flags, os::Fd& program_end) {
  std::array<int, 2> ends{};
  if (::socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, ends.data()) != 0) {
    return os::fail_errno("open a device node of the software GPU", errno);
  }
  program_end = os::Fd(ends[0]);
  os::Fd own(ends[1]);
  struct stat status {};
  const bool prepared = ::fstat(program_end.get(), &status) == 0 &&
                        ((flags & O_NONBLOCK) == 0 || ::fcntl(program_end.get(), F_SETFL, O_NONBLOCK) == 0);
  if (!prepared) return os::fail_errno("open a device node of the software GPU", errno);
  return NodeSocket(std::move(own), status.st_ino);
}

SendOutcome NodeSocket::send(std::span<const std::byte> record) {
  if (::send(fd_.get(), record.data(), record.size(), MSG_DONTWAIT | MSG_NOSIGNAL) >= 0)
    return SendOutcome::Sent;
  return errno == EAGAIN || errno == ENOBUFS || errno == EINTR ? SendOutcome::Full : SendOutcome::Gone;
}

bool NodeSocket::has_unread() const {
  int bytes = 0;
  return ::ioctl(fd_.get(), SIOCOUTQ, &bytes) == 0 && bytes > 0;
}

bool NodeSocket::is_gone() const {
  pollfd entry{fd_.get(), 0, 0};
  return ::poll(&entry, 1, 0) > 0 && (entry.revents & (POLLHUP | POLLERR)) != 0;
}

bool NodeSocket::is_peer(int number) const {
  struct stat status {};
  return ::fstat(number, &status) == 0 && status.st_ino == peer_inode_ && S_ISSOCK(status.st_mode);
}

}  // namespace firebreak::softgpu
