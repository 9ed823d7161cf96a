// SPDX-License-Identifier: Apache-2.0
/// Local sockets that keep messages whole and carry descriptors (AF_UNIX, SOCK_SEQPACKET).
/// One object belongs to one thread at a time; a dead peer is an error, never a SIGPIPE.
#pragma once

#include <sys/types.h>

#include <cstddef>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "base/clock.h"
#include "base/result.h"
#include "os/fd.h"

namespace firebreak::os {

inline constexpr std::size_t most_descriptors_in_a_message = 64;
inline constexpr std::size_t most_bytes_in_a_message = std::size_t{64} * 1024;

/// Who is at the other end, as the kernel knows it.
struct PeerCredentials {
  pid_t pid = 0;
  uid_t uid = 0;
  gid_t gid = 0;
};

struct Message {
  std::vector<std::byte> bytes;
  std::vector<Fd> descriptors;
};

/// One connected socket.
class Socket {
 public:
  explicit Socket(Fd fd) : fd_(std::move(fd)) {}

  /// Sends 1 to most_bytes_in_a_message bytes, and duplicates of the descriptors. Unavailable: the peer is
  /// gone; by `timeout` (negative: never) Timeout: it does not read, ResourceExhausted: too many on their way
  Status send(std::span<const std::byte> bytes, std::span<const int> descriptors, Milliseconds timeout);
  /// Receives one message; received descriptors are close-on-exec. Timeout when none came (negative: wait for
  /// ever), Unavailable when the peer is gone, Protocol when the message was too large or lost a descriptor.
  Result<Message> receive(Milliseconds timeout);

  /// Ends the connection both ways; a receive() that another thread waits in returns Unavailable.
  void hang_up();

  Result<PeerCredentials> peer_credentials() const;
  const Fd& fd() const { return fd_; }
  Fd release() { return std::move(fd_); }

 private:
  Fd fd_;
};

/// Where processes send single messages without a connection, as to systemd's NOTIFY_SOCKET; its receive()
/// takes them. Mode 0600. Replaces a stale socket, and stays when the object goes: the path is the caller's.
Result<Socket> bind_datagrams(const std::string& path);

enum class SocketAccess {
  Owner,  ///< mode 0600
  Group,  ///< mode 0660
};

/// A listening socket; takes its path away at the end, if the path is still its own.
class Listener {
 public:
  /// Refuses a path that is too long or that somebody listens on; replaces a stale socket, never another kind
  /// of file.
  static Result<Listener> listen(const std::string& path, SocketAccess access);

  Listener(Listener&& other) noexcept;
  Listener& operator=(Listener&& other) noexcept;
  Listener(const Listener&) = delete;
  Listener& operator=(const Listener&) = delete;
  ~Listener() { close(); }

  /// The next connection; Timeout when none came within `timeout` (negative: wait for ever).
  Result<Socket> accept(Milliseconds timeout);
  const Fd& fd() const { return fd_; }
  const std::string& path() const { return path_; }

 private:
  Listener(Fd fd, std::string path, dev_t device, ino_t inode)
      : fd_(std::move(fd)), path_(std::move(path)), device_(device), inode_(inode) {}
  void close();

  Fd fd_;
  std::string path_;
  dev_t device_ = 0;
  ino_t inode_ = 0;
};

/// Connects to a listener. NotFound or Unavailable at once when nobody listens; Timeout when it does not
/// accept.
Result<Socket> connect(const std::string& path, Milliseconds timeout);

/// Two sockets connected to each other.
Result<std::pair<Socket, Socket>> socket_pair();

/// A socket for us and the other end for a child's standard streams: there reads and writes wait, as programs
/// expect.
Result<std::pair<Socket, Fd>> child_stream();

/// InvalidArgument, in one line with what to do, when `path` does not fit into a socket address.
Status check_socket_path(const std::string& path);

}  // namespace firebreak::os
