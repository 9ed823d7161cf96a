// SPDX-License-Identifier: Apache-2.0
/// The processes that the agent follows: one object each, from the moment when it is followed until nothing
/// of it is left, and one table of them.
#pragma once

#include <sys/types.h>

#include <cstddef>
#include <deque>
#include <map>
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "agent/loop/orderly_end.h"
#include "ground/base/result.h"
#include "ground/os/event_loop.h"
#include "ground/os/fd.h"
#include "ground/os/kernel.h"
#include "shared/guard_page/guard_view.h"

namespace firebreak::agent {

enum class ProcessState {
  Starting,  ///< the process is followed, and has not joined
  Running,   ///< the process has joined, or is a client that nobody has placed
  // Parked (its work saved, nothing of it on the GPU) would stand here: from Running, and back.
  Ending,  ///< the agent ends it in good order
  Dying,   ///< the process is dead, and its last kernels may still run
  Gone,    ///< nothing of it is left; it is in no table any more
};

/// True when a process in state `from` may come to state `to`. The same state is no step.
bool may_become(ProcessState from, ProcessState to);
const char* to_string(ProcessState state);

/// Returns the start time as /proc/PID/stat tells it (os::start_time); empty: it is gone, or does not let
/// itself be looked at.
std::string start_time_of(os::Kernel& kernel, pid_t pid);
/// True when the process that started then has the number still, or one that does not let itself be looked
/// at.
bool may_be_there(os::Kernel& kernel, pid_t pid, const std::string& start_time);

/// Returns the group in a /proc/PID/cgroup: the longest path, since a machine may have several hierarchies in
/// which it is nowhere special. Empty: it is longer than longest_control_group_bytes, or of bytes that no
/// name of a container has.
std::string control_group_in(const std::string& proc_cgroup);
inline constexpr std::size_t longest_control_group_bytes = 512;

/// A client of one of our domains that nobody has placed there.
struct Stranger {
  std::string name;         ///< name as the kernel shows it
  std::string user;         ///< its number
  std::string came;         ///< how, as far as is known, in words
  std::string tenant = {};  ///< one of whose processes has started it; empty: none is known
};

/// Domains of a process by more than its own word.
struct Whereabouts {
  std::set<std::string> expected = {};  ///< the agent told it to run there: it may, and need not
  std::set<std::string> known = {};     ///< MPS has named it as a client
  friend bool operator==(const Whereabouts&, const Whereabouts&) = default;
};

/// The knowledge of a process that is Dying.
struct Remainder {
  bool has_left = false;  ///< its tenant goes on without it; else the pair waits for its last kernel
  std::shared_ptr<const guard::GuardView> guard = nullptr;
  bool harmless = false;       ///< the process had nothing on the GPU: MPS took it off, or it said so
  std::string others = {};     ///< others who keep its address space, as told last; empty: nobody does
  std::set<pid_t> ended = {};  ///< processes that we ended, since they keep it
};

/// Belongs to the loop's thread.
class Process {
 public:
  Process(pid_t pid, std::string tenant, std::string domain, os::Fd pidfd, std::string control_group = {})
      : pid_(pid),
        tenant_(std::move(tenant)),
        domain_(std::move(domain)),
        pidfd_(std::make_shared<os::Fd>(std::move(pidfd))),
        control_group_(std::move(control_group)) {}

  pid_t pid() const { return pid_; }
  const std::string& tenant() const { return tenant_; }  ///< empty: a stranger has none
  /// The tenant who answers for it: its own, or the one of whom it was started. Empty: nobody is known.
  const std::string& tenant_behind() const { return stranger ? stranger->tenant : tenant_; }
  /// Where it is taken to be, by its own word or by where it would have been placed: for what concerns
  /// itself.
  const std::string& domain() const { return domain_; }
  /// Whether MPS has named it as a client there. Nothing that it does counts for others in any other domain.
  bool is_known_in(const std::string& domain) const { return where_.known.contains(domain); }
  void know_in(const std::string& domain) { where_.known.insert(domain); }
  /// Whether it was told to run there: what it does then counts for itself.
  bool is_expected_in(const std::string& domain) const { return where_.expected.contains(domain); }
  bool may_be_in(const std::string& domain) const { return is_known_in(domain) || is_expected_in(domain); }
  void be_in(Whereabouts where) { where_ = std::move(where); }
  const Whereabouts& whereabouts() const { return where_; }
  /// domain(), where it is known there; else empty.
  std::string known_domain() const { return is_known_in(domain_) ? domain_ : std::string(); }
  /// Moves the process: it works there from now on, with its spare driver instance.
  void move_to(const std::string& domain) { domain_ = domain; }
  /// The only one of ours but for the detectors', which know no Process; who keeps it may outlive this
  /// object.
  const std::shared_ptr<const os::Fd>& pidfd() const { return pidfd_; }
  /// Returns the group as it was when the agent came to know the process: containers are found by it. Empty:
  /// not known.
  const std::string& control_group() const { return control_group_; }
  ProcessState state() const { return state_; }
  bool is_ending() const { return state_ == ProcessState::Ending; }
  /// False, and nothing has changed: that is no step of a process's life.
  bool become(ProcessState state);
  void end_orderly(std::shared_ptr<OrderlyEnd> end);
  /// "MPS took it off the GPU, SIGTERM"; empty: nobody but itself has ended it.
  std::string steps() const { return end_ ? end_->steps() : std::string(); }
  /// MPS took it off the GPU before it ended.
  bool was_taken_off() const { return end_ && end_->harmless(); }

  std::uint64_t adopter =
      0;  ///< the connection that brought it last; 0: it came by itself, or to an agent before
  std::optional<Stranger> stranger;
  os::Watch look;  ///< look at a process that has hung up
  Remainder remainder;

 private:
  pid_t pid_;
  std::string tenant_;
  std::string domain_;
  Whereabouts where_;
  std::shared_ptr<const os::Fd> pidfd_;  ///< none where the process was dead when the agent came
  std::string control_group_;
  ProcessState state_ = ProcessState::Starting;
  std::shared_ptr<OrderlyEnd> end_;
};

/// All processes that are followed, or dead and not gone. A number may be of a dead one and of a living one
/// at once. Belongs to the loop's thread.
class Processes {
 public:
  /// The only place where the agent opens a process that it follows; in the place of a living one before.
  /// NotFound: there is none.
  Result<Process*> add(os::Kernel& kernel, pid_t pid, const std::string& tenant, const std::string& domain);
  /// One that ended before anybody followed it: it is Dying.
  Process& add_dead(pid_t pid, const std::string& tenant, const std::string& domain,
                    const std::set<std::string>& known_in);

  /// Null: there is none. Until it is taken.
  Process* living(pid_t pid) const { return find(living_, pid); }
  Process* dying(pid_t pid) const { return find(dying_, pid); }
  /// Returns the tenant, also of a process that is gone and held; empty: it has none.
  std::string tenant_of(pid_t pid) const;
  /// Returns the group, also of a process that is Gone, until as many others are as are remembered: a fault
  /// is told after its culprit's end.
  std::string control_group_of(pid_t pid) const;
  /// Process::tenant_behind(), as long.
  std::string tenant_behind(pid_t pid) const;
  static constexpr std::size_t most_remembered = 256;
  bool knows(pid_t pid) const { return living(pid) != nullptr || dying(pid) != nullptr; }
  /// Returns them in the order of their numbers.
  std::vector<Process*> all_living() const { return all(living_); }
  std::vector<Process*> all_dying() const { return all(dying_); }
  std::size_t dying_count() const { return dying_.size(); }

  /// Notes that the process has ended: it is Dying, in the place of one of that number.
  Process& die(pid_t pid);
  /// Takes a process that is Gone; it is the caller's. Null: there is none.
  std::unique_ptr<Process> take_living(pid_t pid) { return take(living_, pid); }
  std::unique_ptr<Process> take_dying(pid_t pid) { return take(dying_, pid); }

 private:
  using Table = std::map<pid_t, std::unique_ptr<Process>>;
  struct Gone {
    pid_t pid = 0;
    std::string control_group;
    std::string tenant_behind;
  };
  static Process* find(const Table& table, pid_t pid);
  const Gone* gone(pid_t pid) const;
  static std::vector<Process*> all(const Table& table);
  std::unique_ptr<Process> take(Table& table, pid_t pid);

  Table living_;
  Table dying_;
  std::deque<Gone> gone_;  ///< the last one first
};

}  // namespace firebreak::agent
