// SPDX-License-Identifier: Apache-2.0
/// Sockets: between processes, with descriptors; of clients, by TCP.
#pragma once

#include <sys/types.h>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "ground/base/clock.h"
#include "ground/base/result.h"
#include "ground/os/fd.h"

namespace firebreak::os {

// --- socket
// Local sockets that keep messages whole and carry descriptors (AF_UNIX, SOCK_SEQPACKET).
// One object belongs to one thread at a time; a dead peer is an error, never a SIGPIPE.

inline constexpr std::size_t most_descriptors_in_a_message = 64;
inline constexpr std::size_t most_bytes_in_a_message = std::size_t{64} * 1024;

/// The process at the other end, as the kernel knows it.
struct PeerCredentials {
  pid_t pid = 0;
  uid_t uid = 0;
  gid_t gid = 0;
};

struct Message {
  std::vector<std::byte> bytes;
  std::vector<Fd> descriptors;
  pid_t sender = 0;  ///< sender of the message, where that is asked for (Socket::ask_who_sends)
};

/// One connected socket.
class Socket {
 public:
  explicit Socket(Fd fd) : fd_(std::move(fd)) {}

  /// Sends 1 to most_bytes_in_a_message bytes, and duplicates of the descriptors. Unavailable: the peer is
  /// gone; by `timeout` (negative: never) Timeout: it does not read, ResourceExhausted: too many on their way
  Status send(std::span<const std::byte> bytes, std::span<const int> descriptors, Milliseconds timeout);
  /// Makes each message from now on say which process has sent it, as Linux knows it.
  Status ask_who_sends();
  /// Receives one message; received descriptors are close-on-exec. Timeout when none came (negative: wait for
  /// ever), Unavailable when the peer is gone, Protocol when the message was too large or lost a descriptor.
  Result<Message> receive(Milliseconds timeout);

  /// Ends the connection both ways; a receive() that another thread waits in returns Unavailable.
  void hang_up();
  /// The same for who owns it alone and will not receive any more. Where nothing is left in it that others
  /// have to close, no closer closes it either: that would be a thread for each.
  void hang_up_for_good();

  /// Hands the socket and each descriptor that comes by it to `closer` to be closed, also in a message that
  /// is refused: the other end chose them.
  void close_by(std::shared_ptr<Closer> closer) { fd_.close_by(std::move(closer)); }

  Result<PeerCredentials> peer_credentials() const;
  /// Returns the process, also where its number is another's by now: a descriptor that a poll() finds
  /// readable once it has ended (SO_PEERPIDFD, Linux 6.5; before, whoever has its number now). NotFound: it
  /// is gone.
  Result<Fd> peer_process() const;
  const Fd& fd() const { return fd_; }
  Fd release() { return std::move(fd_); }

 private:
  bool take_off_what_came();

  Fd fd_;
};

/// Makes a socket to which processes send single messages without a connection, as to systemd's
/// NOTIFY_SOCKET; its receive() takes them. Mode 0600. Replaces a stale socket, and stays when the object
/// goes: the path is the caller's.
Result<Socket> bind_datagrams(const std::string& path);

/// One message to such a place, or to an abstract one (its path begins with '@'). Waits for nobody:
/// Unavailable where there is no room for it now.
Status send_datagram(const std::string& path, const std::string& text);

enum class SocketAccess {
  Owner,  ///< mode 0600
  Group,  ///< mode 0660
};

/// The group of a socket's file; none: the directory's or our own, as for any file.
using SocketGroup = std::optional<gid_t>;

/// A listening socket; takes its path away at the end, if the path is still its own.
class Listener {
 public:
  /// Refuses a path that is too long or that somebody listens on; replaces a stale socket, never another kind
  /// of file.
  /// PermissionDenied: that group is not one of ours.
  static Result<Listener> listen(const std::string& path, SocketAccess access, SocketGroup group = {});

  Listener(Listener&& other) noexcept;
  Listener& operator=(Listener&& other) noexcept;
  Listener(const Listener&) = delete;
  Listener& operator=(const Listener&) = delete;
  ~Listener() { close(); }

  /// The next connection; Timeout when none came within `timeout` (negative: wait for ever).
  Result<Socket> accept(Milliseconds timeout);
  const Fd& fd() const { return fd_; }
  const std::string& path() const { return path_; }
  /// True when the path still leads to it: somebody may have removed it, or put another file there.
  bool is_there() const;

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

// --- tcp
// Connections of a tenant's clients: what the kernel knows of a stream, whichever process wrote it.

/// A connection that waits at `listener`, close-on-exec; Timeout where none does, or a signal came first.
/// Makes the listener non-blocking, for all who share it; where one of them undoes that at once, it waits all
/// the same (see ground/os/accepter.h).
Result<Fd> accept_waiting(int listener);

/// True for a TCP socket that listens.
bool is_tcp_listener(int descriptor);

/// How many bytes this TCP connection has taken from whoever wrote to it, since it was accepted: what the
/// peer has acknowledged (tcpi_bytes_acked, Linux 4.1) and what still waits for that (SIOCOUTQ). Exact where
/// nobody writes meanwhile and our side was not shut down. InvalidArgument: it is no TCP connection.
Result<std::uint64_t> bytes_taken(int connection);

/// Sends as many of `bytes` as there is room for; 0: none. Never waits, never a SIGPIPE. Unavailable: the
/// peer is gone.
Result<std::size_t> send_waiting(int connection, std::span<const std::byte> bytes);

// --- stream
// A local socket of another program, that is a stream of bytes (AF_UNIX, SOCK_STREAM).

/// Connected, close-on-exec; does not block. Waits for nobody: NotFound or Unavailable where nobody listens,
/// Unavailable where too many wait to be accepted already.
Result<Fd> connect_stream(const std::string& path);

/// Returns what has come, `most_bytes` at most; empty: nothing has. Never waits. Unavailable: the peer is
/// gone, and all that it sent was read.
Result<std::string> read_waiting(int connection, std::size_t most_bytes);

// --- a child's standard input

struct InputChannel {
  Fd ours;    ///< closed, the child's input ends
  Fd theirs;  ///< the end that is read
};
Result<InputChannel> make_input_channel();
/// Returns, in the child, when nobody has our end any more. Unread input stays.
void wait_for_end_of_input(int input);
/// Never waits, and never a SIGPIPE. Unavailable: there is no room; Protocol: nobody reads there any more.
Status write_byte(const Fd& input, char byte);

// --- half close

/// The peer reads what was sent, and then that we are gone; what it sends can still be received.
void end_sending(const Socket& socket);

}  // namespace firebreak::os
