// SPDX-License-Identifier: Apache-2.0
/// Messages that a peer of the agent has not read yet. The agent waits for nobody: what the socket does not
/// take is kept here, up to a bound, and sent when there is room.
#pragma once

#include <cstddef>
#include <deque>
#include <memory>
#include <string>

#include "ground/base/result.h"
#include "ground/os/closer.h"
#include "ground/os/fd.h"
#include "ground/os/socket.h"

namespace firebreak::agent {

/// The outbox of one connection. Belongs to the loop's thread.
class Outbox {
 public:
  /// A tenant's memory, for who numbers nothing, is 1,024 messages of at most 250 bytes.
  static constexpr std::size_t messages_max = 4096;
  static constexpr std::size_t bytes_max = std::size_t{1} << 20;

  /// `descriptors_max`: so many of those that wait may come with a descriptor, which is ours until it is
  /// sent.
  explicit Outbox(std::size_t descriptors_max = messages_max) : descriptors_max_(descriptors_max) {}

  enum class State {
    Sent,  ///< sent whole
    Full,  ///< go on when the socket can be written to
    Held,  ///< go on in a while: Linux does not say when descriptors that are under way have been read
    Gone,  ///< the peer is gone
  };

  /// Sends it, behind what waits. The descriptor is duplicated where it has to wait. ResourceExhausted: there
  /// is no room for it, or no descriptor, and it is lost.
  Result<State> put(os::Socket& socket, std::string text, int descriptor);
  /// Goes on.
  Result<State> flush(os::Socket& socket);

  std::size_t waiting() const { return letters_.size(); }

 private:
  struct Letter {
    std::string text;
    os::Fd descriptor;
  };

  static Result<State> send(os::Socket& socket, const std::string& text, int descriptor);
  Status keep(std::string text, int descriptor);

  std::shared_ptr<os::Closer> closer_ = std::make_shared<os::Closer>();
  std::deque<Letter> letters_;
  std::size_t bytes_ = 0;
  std::size_t descriptors_max_;
  std::size_t descriptors_ = 0;
};

}  // namespace firebreak::agent
