// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <sys/types.h>

#include <cstddef>
#include <map>
#include <memory>
#include <span>
#include <string>
#include <utility>

#include "ground/base/result.h"
#include "ground/os/fd.h"
#include "ground/os/growing_memory.h"
#include "ground/os/kernel.h"

namespace firebreak::park {

/// The agent's memory for all dumps together. Thread safe: no; belongs to the loop's thread.
class DumpBudget {
 public:
  explicit DumpBudget(std::size_t bytes = std::size_t{1} << 30) : left_bytes_(bytes) {}
  /// A part of another one, which has to have room as well.
  DumpBudget(std::size_t bytes, std::shared_ptr<DumpBudget> whole)
      : left_bytes_(bytes), whole_(std::move(whole)) {}
  /// Takes as many bytes as there are, `wanted_bytes` at most.
  std::size_t take(std::size_t wanted_bytes);
  void give_back(std::size_t bytes);

 private:
  std::size_t left_bytes_;
  std::shared_ptr<DumpBudget> whole_;  ///< null: it is one
};

/// The same for several users, of whom none takes the room of all: a quarter stays for the others.
class DumpBudgets {
 public:
  explicit DumpBudgets(std::size_t bytes) : bytes_(bytes), whole_(std::make_shared<DumpBudget>(bytes)) {}
  std::shared_ptr<DumpBudget> of(uid_t user);
  const std::shared_ptr<DumpBudget>& whole() const { return whole_; }

 private:
  std::size_t bytes_;
  std::shared_ptr<DumpBudget> whole_;
  std::map<uid_t, std::weak_ptr<DumpBudget>> of_users_;
};

/// Bytes that count against a budget, until this goes. The first 64 do not: they say how long the dump is.
class BudgetedBytes {
 public:
  /// Never more than `bytes_max`, whatever there is room for.
  BudgetedBytes(std::shared_ptr<DumpBudget> budget, std::size_t bytes_max)
      : budget_(std::move(budget)), bytes_(bytes_max) {}
  /// The other one is empty then, and can be used.
  BudgetedBytes(BudgetedBytes&& other) noexcept
      : budget_(other.budget_),
        bytes_(std::move(other.bytes_)),
        counted_bytes_(std::exchange(other.counted_bytes_, 0)) {}
  BudgetedBytes& operator=(BudgetedBytes&& other) noexcept;
  ~BudgetedBytes() { clear(); }

  /// The first ones that the budget has room for; answers how many.
  std::size_t add(std::span<const std::byte> more);
  void clear();
  std::span<const std::byte> all() const { return bytes_.all(); }

 private:
  std::shared_ptr<DumpBudget> budget_;
  os::GrowingMemory bytes_;
  std::size_t counted_bytes_ = 0;  ///< against the budget
};

/// The named pipe that one process dumps into. As long as it is not read its process stands still in the
/// middle of its dump, since the pipe is much smaller than a dump (250 KB of an idle client, 16 MB of
/// PyTorch). Once it is read the pipe has room for a quarter of what comes, 64 KiB at most.
class DumpPipe {
 public:
  /// Largest part of one dump that is kept; what comes after that is read and thrown away. The headers at the
  /// end say who it was. PyTorch has dumps of 91 MB while it trains (H100).
  static constexpr std::size_t bytes_max = std::size_t{512} << 20;

  /// Makes it where it is missing, for the users who have access to its folder. Whoever begins to write into
  /// it before this finds a reader now.
  /// `budget`: shared by all whose bytes it bounds.
  static Result<DumpPipe> open(os::Kernel& kernel, const std::string& path,
                               std::shared_ptr<DumpBudget> budget = std::make_shared<DumpBudget>());

  enum class Beginning {
    TooShort,  ///< nobody can tell yet
    Dump,      ///< a CUDA core dump's
    Other,     ///< what follows is none
  };
  /// What waits in the pipe before anything was read. All of it stays there.
  Beginning beginning() const;

  enum class State {
    Silent,   ///< nobody has dumped
    Writing,  ///< a dump has begun
    Nearly,   ///< the rest is one byte more than the pipe holds: its process stands still in it
    Done,     ///< the dump is complete, or its writer is gone
  };

  /// Takes what there is, 1 MiB at most, and never waits. Stops so that what is left is more than the pipe
  /// holds, and its process does not go on, until let_end(). What is no dump, or not longer than that, is not
  /// held.
  State read();
  /// Adds to bytes(), in that state, what waits in the pipe, and leaves it there. Returns whether that is all
  /// but the last 4 KiB, a page of which part was read: the process may still be writing, or fill the pipe
  /// with less.
  bool look_ahead();
  /// In that state: the pipe has no room, so its process writes nothing more before let_end().
  bool is_full() const;
  /// Reads the whole of it from now on, through a wide pipe.
  void let_end();
  State state() const { return state_; }
  int fd() const { return fd_.get(); }
  const os::Fd& descriptor() const { return fd_; }
  std::span<const std::byte> bytes() const { return bytes_.all(); }
  /// Gives them away, and has none.
  BudgetedBytes take_bytes() {
    ahead_bytes_ = 0;
    return std::move(bytes_);
  }
  /// How many were read, those that were thrown away, too.
  std::size_t came_bytes() const { return came_bytes_; }
  /// True when more came than bytes_max, or than the budget had room for.
  bool is_cut() const { return is_cut_; }
  /// Forgets what it has read.
  void clear();

 private:
  DumpPipe(os::Kernel& kernel, os::Fd fd, std::size_t room_bytes, std::shared_ptr<DumpBudget> budget)
      : kernel_(&kernel), fd_(std::move(fd)), bytes_(std::move(budget), bytes_max), room_bytes_(room_bytes) {}

  std::size_t bytes_wanted() const;
  void take(std::span<const std::byte> piece);
  std::size_t room_wanted(std::size_t rest_bytes) const;
  void make_room(std::size_t came_bytes);
  bool is_to_fill_first();
  bool has_hung_up() const;

  os::Kernel* kernel_;
  os::Fd fd_;
  State state_ = State::Silent;
  BudgetedBytes bytes_;
  std::size_t came_bytes_ = 0;
  std::size_t ahead_bytes_ = 0;  ///< bytes of bytes_ that wait in the pipe still
  std::size_t room_bytes_;       ///< bytes that the pipe holds
  int turns_to_fill_ = 64;       ///< so often read() may leave a wide pipe to its writer
  bool may_end_ = false;
  bool is_cut_ = false;
};

}  // namespace firebreak::park
