// SPDX-License-Identifier: Apache-2.0
/// Closes descriptors that somebody else made or shares, without making anybody wait.
#pragma once

#include <cstddef>
#include <deque>
#include <memory>
#include <mutex>

#include "ground/os/fd.h"

namespace firebreak::os {

/// The last close() of such a descriptor takes as long as who made it likes: a TCP socket lingers
/// (SO_LINGER), in a local one others are on their way, a file system in user space answers or does not. So
/// it happens on threads of their own, which there are only while there is something to close. Nobody waits
/// for them: they outlive whoever has the closer, and go with the process. One closer each for those who are
/// not to wait for each other. What waits in it is as much as the process may have descriptors. Made by
/// std::make_shared(). Thread safe.
class Closer : public std::enable_shared_from_this<Closer> {
 public:
  /// Number of threads that may hang before those behind them wait.
  static constexpr std::size_t most_threads = 8;

  /// Closes in the order of the calls. Where no thread can be started a descriptor is closed with the next
  /// one, or with the closer.
  void close(Fd fd);

 private:
  void serve();
  void start_thread_if_needed();

  std::mutex mutex_;  ///< guards all below
  std::deque<Fd> waiting_;
  std::size_t threads_ = 0;
  std::size_t closing_ = 0;  ///< number of those that are being closed
};

}  // namespace firebreak::os
