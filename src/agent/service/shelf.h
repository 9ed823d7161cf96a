// SPDX-License-Identifier: Apache-2.0
/// A process that holds descriptors by name for agents, and does nothing else. It outlives the agent that
/// started it as long as somebody keeps that agent's end of its socket; then it ends, and what it held with
/// it. There are as many as the limit on descriptors asks for: each has that limit to itself.
///
/// A question is one message: its number, a space, a letter, a space, and names, one a line. The answer
/// begins with the same number, so that nobody takes the answer to somebody else's question:
///   k NAME, a descriptor attached   "1": it is kept, in the place of one of that name; "0": there is no room
///   d NAME ...                      how many are left; a name that ends in '/' stands for all that begin so
///   h NAME ...                      "1" or "0" for each: whether it is here
///   g NAME ...                      the same, and those that are here are attached
#pragma once

#include <map>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "ground/os/fd.h"
#include "ground/os/socket.h"

namespace firebreak::agent {

/// Does what one question asks of a shelf. For one thread.
class Shelf {
 public:
  /// `descriptors_max`: that it holds at once.
  explicit Shelf(std::size_t descriptors_max) : descriptors_max_(descriptors_max) {}

  struct Answer {
    std::string text;
    std::vector<int> descriptors;  ///< descriptors, which stay the shelf's
  };
  /// Empty text: that was no question.
  Answer answer(std::string_view question, std::vector<os::Fd> descriptors);

 private:
  std::string keep(std::string_view name, std::vector<os::Fd> descriptors);
  void drop(std::string_view name);
  std::shared_ptr<os::Closer> closer_for(std::string_view name) const;

  std::size_t descriptors_max_;
  std::map<std::string, os::Fd, std::less<>> kept_;
};

/// Serves until nobody has the other end any more, with as many descriptors as this process may have. A peer
/// that waits for the end of this process waits for that of the socket, so the caller leaves it open.
void serve_shelf(os::Socket& agent);

}  // namespace firebreak::agent
