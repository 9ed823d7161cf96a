// SPDX-License-Identifier: Apache-2.0
#include "ground/os/claimed_name.h"

#include <sys/socket.h>
#include <sys/un.h>

#include <cerrno>
#include <cstddef>
#include <cstring>

namespace firebreak::os {

Result<Fd> claim_name(const std::string& name) {
  sockaddr_un address{};
  address.sun_family = AF_UNIX;
  if (name.size() >= sizeof address.sun_path)
    return fail(ErrorCode::InvalidArgument, "the name " + name + " is too long");
  std::memcpy(address.sun_path + 1, name.data(), name.size());  // a null byte in front: it is no file
  Fd fd(::socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0));
  if (!fd) return fail_errno("make a socket", errno);
  const auto length = static_cast<socklen_t>(offsetof(sockaddr_un, sun_path) + 1 + name.size());
  if (::bind(fd.get(), reinterpret_cast<const sockaddr*>(&address), length) == 0) return fd;
  if (errno == EADDRINUSE) return fail(ErrorCode::Unavailable, "the name " + name + " is another process's");
  return fail_errno("take the name " + name, errno);
}

}  // namespace firebreak::os
