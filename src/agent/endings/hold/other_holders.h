// SPDX-License-Identifier: Apache-2.0
/// Who else keeps the GPU address space of a process that has ended. A child of fork() has the descriptors of
/// its parent, and with them the address space and the channels live on: on an H100 a killed process's kernel
/// stored for 5.0 s more, until its child ended.
///
/// What decides is the address space (/dev/nvidia-uvm): the GPU reaches memory through it alone, and where it
/// goes under a kernel the kernel goes with it (results/h100/dying-probe.json). The resource manager's
/// descriptors do not: exported memory is one of those, and lives in other processes for good reason.
///
/// What is a proof that nobody keeps it:
///   * As long as we have duplicates: no process has a descriptor of the same opening (kcmp). Then we close
///     ours, and the driver has released it when close() returns, unless somebody has it whom /proc does not
///     show.
///   * Whether there is such a one the mark says (ground/os/descriptors.h): then it is waited for, and its
///     holder is looked for among the forks, of which mappings are looked at as well. Whoever may open the
///     device may lock that byte as well, once the mark has gone: a lock that another user's process shows
///     is none, and nobody waits for ever for one that nobody shows.
///   * Where the opening ended with somebody else than us, its release may still be under way: until every
///     process that was seen to have it has ended, or for `settles` where none was seen or one lives on.
///   * Where an agent before us had the duplicates, its marks tell the openings: whoever has a descriptor of
///     one is found by it, and gives us a duplicate again.
/// Where there is neither a duplicate nor a mark (the operator has nothing held) forks are known: processes
/// of the same image (os::image_of) that have any such descriptor or mapping; and whom an agent before has
/// seen.
#pragma once

#include <sys/types.h>

#include <optional>
#include <set>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "agent/endings/hold/gpu_descriptors.h"
#include "ground/base/clock.h"

namespace firebreak::hold {

/// A process that keeps the address space of a dead one.
struct OtherHolder {
  pid_t pid = 0;
  std::string start_time;  ///< empty: it does not let itself be looked at
  std::string name;
  /// The process came from the dead one by fork(), runs no other program, and is no tenant's process itself:
  /// with its parent dead it is nobody's any more.
  bool is_fork = false;
  friend bool operator==(const OtherHolder&, const OtherHolder&) = default;
};

/// Facts that another agent needs of a process to go on looking, since it has no duplicates of what this one
/// had.
struct Traces {
  std::string image;                   ///< os::image_of, as long as it had them; empty: not known
  std::vector<os::OpeningMark> marks;  ///< marks of its address spaces
  std::vector<OtherHolder> others;     ///< others that had them at the last look
  bool empty() const { return marks.empty() && others.empty(); }
  friend bool operator==(const Traces&, const Traces&) = default;
};

/// The process whose address space it is.
struct Late {
  pid_t pid = 0;
  std::set<pid_t> others;          ///< processes of tenants: no fork of anybody, whatever they look like
  Traces traces;                   ///< its image, and what an agent before knew
  std::optional<uid_t> user = {};  ///< none: not known
};

struct Findings {
  std::vector<OtherHolder> seen;
  bool unseen = false;    ///< somebody keeps it who is none of these
  bool settling = false;  ///< nobody does any more, and its release may still be under way
  bool none() const { return seen.empty() && !unseen && !settling; }
  friend bool operator==(const Findings&, const Findings&) = default;
};

/// Whether that descriptor's opening has the lock that is this mark, by its /proc/PID/fdinfo/FD.
bool shows_mark(std::string_view fdinfo, os::OpeningMark mark);

/// "process 4711 (python3), somebody who is not to be seen"
std::string describe(const Findings& findings);

/// Looks again and again, one thread at a time. Takes 10 ms where 240 processes have 1,700 descriptors.
class OtherHolders {
 public:
  /// An address space took at most 0.17 s to go under a running kernel (H100); this is three times that.
  static constexpr Milliseconds settles{500};
  /// Nobody is waited for longer than that whom /proc does not show: a lock that says so may be anybody's.
  static constexpr Milliseconds unseen_longest{30'000};

  /// The references outlive it. Looks for the openings of `late`'s marks at once.
  OtherHolders(os::Kernel& kernel, const Clock& clock, Late late);

  /// Duplicates of these, from whoever has them; once.
  Duplicates take_found() { return std::exchange(found_, {}); }
  /// Lets a look last as long as it takes, from now on. Before, it is one of the loop's: of a process that
  /// has very many descriptors the first are looked at, and the rest may be what is looked for.
  void take_time() { is_hurried_ = false; }
  /// Looks with `duplicates` of it that we still have, all of them, or none any more.
  Findings look(const Duplicates& duplicates);
  /// Prepares; called before the duplicates are closed: later nobody can look from there.
  void prepare_to_close(const Duplicates& duplicates);

 private:
  struct Witness {
    os::Fd descriptor;
    os::OpeningMark mark;
  };
  void find_marked();
  bool is_seen_from(const std::string& path);
  void find_marked_of(pid_t pid);
  void find_out(os::Fd duplicate);
  bool are_all_found() const;
  bool has_witness(os::OpeningMark mark) const;
  std::vector<OtherHolder> same_openings(const Duplicates& duplicates);
  bool has_one_of(pid_t pid, const std::vector<const Duplicate*>& spaces);
  std::vector<OtherHolder> forks(bool somebody_has_it);
  bool keeps_any_space(pid_t pid);
  bool has_space_mapped(pid_t pid);
  void add_known(std::vector<OtherHolder>& holders);
  bool is_marked();
  bool is_lock_of_another_user(os::OpeningMark mark);
  bool is_given_up(const Findings& findings);
  bool has_ended(const OtherHolder& holder);
  void note(const std::vector<OtherHolder>& seen);

  os::Kernel& kernel_;
  const Clock& clock_;
  Late late_;
  std::vector<Witness> witnesses_;
  Duplicates found_;
  std::vector<OtherHolder> last_seen_;
  std::vector<OtherHolder> known_;  ///< every other that was ever seen
  bool is_hurried_ = true;
  Monotonic last_kept_{};  ///< last time that somebody else kept it, while we had nothing of it any more
  bool was_kept_ = false;
  std::optional<Monotonic> unseen_since_;
};

}  // namespace firebreak::hold
