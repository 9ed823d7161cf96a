// SPDX-License-Identifier: Apache-2.0
/// Clients over the loopback device, for tests.
#pragma once

#include <arpa/inet.h>
#include <gtest/gtest.h>
#include <netinet/in.h>
#include <sys/socket.h>
#include <unistd.h>

#include <algorithm>
#include <string>

#include "ground/os/fd.h"

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
  /// The receive buffer has so many bytes; 0 leaves it as it comes.
  Fd connect_client(int receive_bytes = 0) const {
    Fd client(::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0));
    if (receive_bytes > 0)
      ::setsockopt(client.get(), SOL_SOCKET, SO_RCVBUF, &receive_bytes, sizeof receive_bytes);
    EXPECT_EQ(::connect(client.get(), reinterpret_cast<const sockaddr*>(&address), sizeof address), 0);
    return client;
  }
  Fd accept_client() const { return Fd(::accept4(listener.get(), nullptr, nullptr, SOCK_CLOEXEC)); }

  /// Its last close() lasts for an hour from now on, or until its client, of less than 32 KiB of receive
  /// buffer, has read all: so many bytes.
  static std::size_t make_linger(const Fd& connection) {
    const int least = 1;  // Linux gives more
    ::setsockopt(connection.get(), SOL_SOCKET, SO_SNDBUF, &least, sizeof least);
    const linger for_an_hour{1, 3600};
    ::setsockopt(connection.get(), SOL_SOCKET, SO_LINGER, &for_an_hour, sizeof for_an_hour);
    const std::string text(std::size_t{64} << 10, 'x');
    std::size_t all = 0;
    for (ssize_t sent = 0; sent >= 0; all += static_cast<std::size_t>(std::max<ssize_t>(sent, 0)))
      sent = ::send(connection.get(), text.data(), text.size(), MSG_DONTWAIT | MSG_NOSIGNAL);
    return all;
  }
  struct Lingering {
    Fd connection;
    Fd client;
    std::size_t sent = 0;
  };
  Lingering lingering() const {
    Lingering made{{}, connect_client(4096), 0};
    made.connection = accept_client();
    made.sent = make_linger(made.connection);
    return made;
  }
  /// This waits until the connection is closed at the other end.
  static std::size_t read_to_end(const Fd& from) {
    std::size_t all = 0;
    for (std::string got = " "; !got.empty(); all += got.size()) got = read_all(from, std::size_t{64} << 10);
    return all;
  }

  /// This reads up to so many bytes; it reads fewer where the connection ends before.
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
