// SPDX-License-Identifier: Apache-2.0
/// A local stream socket that listens, for tests that play another program's server.
#pragma once

#include <fcntl.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#include <cstring>
#include <string>

#include "ground/os/fd.h"

namespace firebreak::os {

/// Listens at `path`, where a stale socket may be; does not block. Empty: it cannot.
inline Fd listen_for_streams(const std::string& path) {
  ::unlink(path.c_str());
  Fd listener(::socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0));
  sockaddr_un address{};
  address.sun_family = AF_UNIX;
  std::memcpy(address.sun_path, path.c_str(), path.size() + 1);
  const bool listens =
      ::bind(listener.get(), reinterpret_cast<const sockaddr*>(&address), sizeof(address)) == 0 &&
      ::listen(listener.get(), 8) == 0;
  return listens ? std::move(listener) : Fd();
}

/// The next connection; empty: none waits.
inline Fd accept_stream(const Fd& listener) {
  return Fd(::accept4(listener.get(), nullptr, nullptr, SOCK_CLOEXEC | SOCK_NONBLOCK));
}

}  // namespace firebreak::os
