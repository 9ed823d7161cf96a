// SPDX-License-Identifier: Apache-2.0
/// The descriptors of processes: which there are, how many there may be, and who has the same opening.
#pragma once

#include <sys/types.h>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <optional>
#include <string>

#include "ground/base/result.h"
#include "ground/os/fd.h"
#include "ground/os/kernel.h"
#include "ground/os/looks.h"

namespace firebreak::os {

// --- process descriptors

/// One descriptor of a process: its number there, and what /proc shows it to be. False: enough was seen.
using DescriptorVisitor = std::function<bool(int number, const std::string& target)>;

/// Shows a process's descriptors in no order. They come and go meanwhile; what cannot be read is passed over.
/// Its first thread may have ended, and then shows none: they are those of one that lives. Where it ends just
/// then, a descriptor may be shown twice.
/// NotFound: there is no such process; PermissionDenied: it is not ours to look into; Timeout: it does not
/// let itself be looked at.
Status visit_descriptors(Kernel& kernel, pid_t pid, const DescriptorVisitor& visit);

/// Number of likely candidates that are taken and looked at more closely in one turn of a loop.
inline constexpr std::size_t most_closer_looks = 64;

/// The same of as many as one look takes (ground/os/looks.h), from number `from` on. False: there are more,
/// and `from` is where to go on; true: those were the last, or enough was seen, and `from` is 0, as after an
/// error.
Result<bool> visit_some_descriptors(Kernel& kernel, pid_t pid, int& from, const DescriptorVisitor& visit);
/// True when the process's first thread has any: one that has ended shows none.
bool first_thread_shows_descriptors(Kernel& kernel, pid_t pid);
/// The first most_descriptors_of_a_process, in one go. False: there are more.
Result<bool> visit_first_descriptors(Kernel& kernel, pid_t pid, const DescriptorVisitor& visit);

/// The same look by look, for who looks again and again: each is for a turn of a loop of its own, so that a
/// process that has very many does not make one last.
class DescriptorScan {
 public:
  /// The next look, or the first one. True: enough was seen, or those were all. False: there are more, which
  /// are the next look's, or, where none is under way, are not looked at. After an error it begins again.
  Result<bool> visit_next(Kernel& kernel, pid_t pid, const DescriptorVisitor& visit);
  /// True when some have been looked at, and others not yet.
  bool is_under_way() const { return from_ != 0; }
  /// Returns the number of looks since the first one.
  std::size_t looks() const { return looks_; }
  /// The next look is the first one.
  void begin_again() { from_ = 0; }

 private:
  int from_ = 0;
  std::size_t looks_ = 0;  ///< looks since the first one, that one included
  std::size_t seen_ = 0;   ///< descriptors, by these
};

/// The same of such a folder in /proc: that of a thread.
Status visit_descriptors_in(Kernel& kernel, const std::string& directory, const DescriptorVisitor& visit);

/// How many a process has, without a look at each. Empty: Linux does not say so before 6.2, the process is
/// gone, or it is not ours to look into.
std::optional<std::size_t> count_descriptors(Kernel& kernel, pid_t pid);

/// How many a process had when all were last looked at. One that has as many still has opened nothing since,
/// as far as that says: it may have closed one and opened another. So after some such glances all are looked
/// at again. Where Linux does not count (before 6.2) that is each time.
class DescriptorCount {
 public:
  /// Notes the count before a look at all of them: what comes while that is under way makes the next count
  /// another one.
  void note(Kernel& kernel, pid_t pid);
  /// Makes the next look see all of them again.
  void forget() { count_.reset(); }
  /// True when there are as many as noted, and fewer than `most` glances since. Each glance counts, also one
  /// that says no.
  bool is_as_noted(Kernel& kernel, pid_t pid, std::uint32_t most);
  /// Number of glances since the count.
  std::uint32_t glances() const { return glances_; }

 private:
  std::optional<std::size_t> count_;
  std::uint32_t glances_ = 0;
};

// --- what a descriptor is
// Found out without a word to the file system behind it: one in user space (FUSE) answers when it likes, and
// holds whoever asks. The text that /proc shows proves nothing: a file of such a file system may be called
// "/dev/nvidia-uvm" where its owner has mounted it.

enum class DescriptorKind { MemoryFile, Device, Socket, Other };

/// Returns Other also where the kind cannot be said.
DescriptorKind kind_of(int fd);

/// True when it is what /proc shows as `link`: that device, a memory file, a socket. Linux's own facts of the
/// inode decide.
bool is_what_it_is_called(int fd, const std::string& link);
/// The same of the file to which `path` leads, a descriptor in /proc: NotFound where it is something else.
Status check_what_it_is_called(const std::string& path, const std::string& link);

/// Opens the file behind `path`, a descriptor in /proc that shows `link`, once more, for reading. NotFound:
/// it is something else.
Result<Fd> open_what_it_is_called(Kernel& kernel, const std::string& path, const std::string& link);

// --- descriptor limit
// How many descriptors this process may have, and has.

/// RLIMIT_NOFILE.
struct DescriptorLimit {
  std::uint64_t soft = 0;
  std::uint64_t hard = 0;
  friend bool operator==(const DescriptorLimit&, const DescriptorLimit&) = default;
};

Result<DescriptorLimit> descriptor_limit();

/// Raises this process's limit of descriptors as far as it may: to the hard limit, which root raises first,
/// as far as fs.nr_open allows; and to no more than `most`. Programs that it starts afterwards
/// (spawn_process) get the limit that it had itself, since those that use select() cannot have more than
/// 1,024. Called once, before other threads start.
Result<DescriptorLimit> raise_descriptor_limit(std::uint64_t most = std::uint64_t{1} << 20);

/// Returns the limit that spawn_process gives back; empty: nothing was raised.
std::optional<DescriptorLimit> descriptor_limit_of_children();

/// Makes sure that this process can open so many more: where its limit is in the way it becomes twice what it
/// was, or as much more as is needed and the hard limit allows. A process that does without is never given
/// another limit, since programs that use select() cannot have more than 1,024; programs that it starts
/// inherit it. ResourceExhausted: the hard limit does not allow it; what it is. Any thread.
Status make_room_for_descriptors(std::uint64_t count);

/// The same opening with a number above the soft limit, which is raised for a moment: so the program has all
/// numbers below for itself. The one given, where the hard limit does not allow that. For whoever works in
/// somebody else's process. Any thread; a limit that another thread sets just then is lost.
Fd move_above_limit(Fd descriptor);

/// How many are open.
Result<std::size_t> open_descriptors();

// --- opening mark
// Whether one opening of a file (Linux's "open file description") is there still, whoever has it: a lock of
// one byte that belongs to the opening, and that another opening of the same file can see. It shows also
// what /proc does not: a descriptor that is on its way through a socket, one that only a mapping or a driver
// keeps.
//
// Linux takes the lock away just before it has the driver release the file. So a lock that is there proves
// that somebody has the opening; one that is gone proves that nobody can get at it any more, and that the
// release has begun. That it has ended is known only of a close() of one's own that was the last, and of a
// process that has ended since.

/// The byte that tells this opening from all others of its file.
using OpeningMark = std::uint64_t;

/// Marks lie from here on: no memory file is larger. Locks of whole files end before: within another lock of
/// the same opening a mark could not be told apart.
inline constexpr std::uint64_t first_mark = std::uint64_t{1} << 48;

/// Marks the opening behind a descriptor for as long as it lives, whoever closes his duplicate first.
/// PermissionDenied: the descriptor is not for writing. Unavailable: no byte is to be had.
Result<OpeningMark> mark_opening(int fd);

/// True when the opening with that mark lives; `fd` is another opening of the same file.
Result<bool> is_marked(int fd, OpeningMark mark);

}  // namespace firebreak::os
