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
/// middle of its dump, since the pipe is much smaller than a dump (250 KB of an idle client, 16 MB of
/// PyTorch). Once it is read the pipe has room for a quarter of what comes, 64 KiB at most.
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
    Nearly,   ///< what is left is one byte more than the pipe holds: its process stands still in it
    Done,     ///< and is complete, or its writer is gone
  };

  /// Takes what there is, 1 MiB at most, and never waits. Stops so that what is left is more than the pipe
  /// holds, and its process does not go on, until let_end(). What is no dump, or not longer than that, is not
  /// held.
  State read();
  /// In that state: adds to bytes() what waits in the pipe, and leaves it there. Whether that is all but the
  /// last 4 KiB, a page of which part was read: the process may still be writing, or fill the pipe with less.
  bool look_ahead();
  /// From now on the whole of it is read, through a wide pipe.
  void let_end();
  State state() const { return state_; }
  int fd() const { return fd_.get(); }
  const os::Fd& descriptor() const { return fd_; }
  std::span<const std::byte> bytes() const { return bytes_; }
  /// How many were read, those that were thrown away, too.
  std::size_t came_bytes() const { return came_bytes_; }
  /// More came than bytes_max.
  bool is_cut() const { return is_cut_; }
  /// Forgets what it has read.
  void clear();

 private:
  DumpPipe(os::Kernel& kernel, os::Fd fd, std::size_t room_bytes)
      : kernel_(&kernel), fd_(std::move(fd)), room_bytes_(room_bytes) {}

  std::size_t bytes_wanted() const;
  void take(std::span<const std::byte> piece);
  void make_room();
  bool has_hung_up() const;

  os::Kernel* kernel_;
  os::Fd fd_;
  State state_ = State::Silent;
  std::vector<std::byte> bytes_;
  std::size_t came_bytes_ = 0;
  std::size_t ahead_bytes_ = 0;  ///< of bytes_, those that wait in the pipe still
  std::size_t room_bytes_;       ///< in the pipe
  bool may_end_ = false;
  bool is_cut_ = false;
};

}  // namespace firebreak::park
