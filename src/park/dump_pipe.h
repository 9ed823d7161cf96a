// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <span>
#include <string>
#include <vector>

#include "base/result.h"
#include "os/fd.h"
#include "os/kernel.h"

namespace firebreak::park {

/// The named pipe that one process dumps into. As long as it is not read its process stands still in the
/// middle of its dump, since the pipe is much smaller than a dump (250 KB of an idle client).
class DumpPipe {
 public:
  /// What is read of one dump at most; what comes after that is read and thrown away.
  static constexpr std::size_t bytes_max = std::size_t{64} << 20;

  /// Makes it where it is missing, for the users who have access to its folder. Whoever begins to write into
  /// it before this finds a reader now.
  static Result<DumpPipe> open(os::Kernel& kernel, const std::string& path);

  enum class State {
    Silent,   ///< nobody has dumped
    Writing,  ///< a dump has begun
    Nearly,   ///< all of it is read that can be read while its process stands still in it
    Done,     ///< and is complete, or its writer is gone
  };

  /// Takes what there is, 1 MiB at most, and never waits. Stops before the last 4 KiB of the dump, so that
  /// its process does not go on, until let_end(). What is no dump, or not longer than that, is not held.
  State read();
  /// From now on the whole of it is read, through a wide pipe.
  void let_end();
  State state() const { return state_; }
  int fd() const { return fd_.get(); }
  const os::Fd& descriptor() const { return fd_; }
  std::span<const std::byte> bytes() const { return bytes_; }
  /// More came than bytes_max.
  bool is_cut() const { return is_cut_; }
  /// Forgets what it has read.
  void clear();

 private:
  DumpPipe(os::Kernel& kernel, os::Fd fd) : kernel_(&kernel), fd_(std::move(fd)) {}

  std::size_t bytes_wanted() const;
  bool has_hung_up() const;

  os::Kernel* kernel_;
  os::Fd fd_;
  State state_ = State::Silent;
  std::vector<std::byte> bytes_;
  std::size_t came_bytes_ = 0;
  bool may_end_ = false;
  bool is_cut_ = false;
};

}  // namespace firebreak::park
