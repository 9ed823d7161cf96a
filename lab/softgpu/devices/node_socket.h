// SPDX-License-Identifier: Apache-2.0
/// The two ends of a device node that we play ourselves: the descriptor that the program gets, and ours.
#pragma once

#include <sys/types.h>

#include <cstddef>
#include <span>
#include <utility>

#include "ground/base/result.h"
#include "ground/os/fd.h"

namespace firebreak::softgpu {

enum class SendOutcome { Sent, Full, Gone };

/// Our end. Each send() is one read() of the program's. One thread at a time.
class NodeSocket {
 public:
  /// `flags` are open()'s; O_NONBLOCK holds for the program's end.
  static Result<NodeSocket> open(int flags, os::Fd& program_end);

  SendOutcome send(std::span<const std::byte> record);
  /// This tells whether the program has not read everything yet.
  bool has_unread() const;
  /// This tells whether the program has closed its end.
  bool is_gone() const;
  /// This closes our end; the program then reads an end of file.
  void close() { fd_.reset(); }
  /// This tells whether the descriptor is (still) the program's end of this node.
  bool is_peer(int number) const;

 private:
  NodeSocket(os::Fd fd, ino_t peer_inode) : fd_(std::move(fd)), peer_inode_(peer_inode) {}
  os::Fd fd_;
  ino_t peer_inode_;
};

}  // namespace firebreak::softgpu
