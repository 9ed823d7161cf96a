// SPDX-License-Identifier: Apache-2.0
/// Clients over the loopback device, for tests.
#pragma once

#include <arpa/inet.h>
#include <gtest/gtest.h>
#include <netinet/in.h>
#include <sys/socket.h>
#include <unistd.h>

#include <string>

#include "os/fd.h"

namespace firebreak::os {

/// A listening socket, and clients of it. A client's connection has arrived when connect_client() returns.
struct Loopback {
  Fd listener{::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0)};
  sockaddr_in address{};

  Loopback() {
    address.sin_family = AF_INET;
    address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    socklen_t size = sizeof address;
    EXPECT_EQ(::bind(listener.get(), reinterpret_cast<sockaddr*>(&address), size), 0);
    EXPECT_EQ(::listen(listener.get(), 8), 0);
    EXPECT_EQ(::getsockname(listener.get(), reinterpret_cast<sockaddr*>(&address), &size), 0);
  }
  /// With a receive buffer of so many bytes; 0: as it comes.
  Fd connect_client(int receive_bytes = 0) const {
    Fd client(::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0));
    if (receive_bytes > 0)
      ::setsockopt(client.get(), SOL_SOCKET, SO_RCVBUF, &receive_bytes, sizeof receive_bytes);
    EXPECT_EQ(::connect(client.get(), reinterpret_cast<const sockaddr*>(&address), sizeof address), 0);
    return client;
  }
  /// Up to so many bytes; fewer where the connection ends before.
  static std::string read_all(const Fd& from, std::size_t bytes) {
    std::string all(bytes, '\0');
    std::size_t at = 0;
    while (at < bytes) {
      const ssize_t got = ::read(from.get(), all.data() + at, bytes - at);
      if (got <= 0) break;
      at += static_cast<std::size_t>(got);
    }
    all.resize(at);
    return all;
  }
};

}  // namespace firebreak::os
