// SPDX-License-Identifier: Apache-2.0
/// Signals in, incidents out: which signals are of one fault.
#pragma once

#include <optional>
#include <set>
#include <string>
#include <vector>

#include "agent/faults/fault/attribution.h"
#include "agent/faults/fault/incident.h"
#include "ground/base/clock.h"

namespace firebreak::fault {

struct MergerOptions {
  /// An incident takes in no signal later than this after its last one. The slowest follower that was
  /// measured is the CUDA error of a PBDMA fault's co-client, 467 ms after the fault.
  Nanoseconds window = std::chrono::milliseconds(1000);
  /// Time after a fault that ended what a process had on the GPU for which its end is no news: whoever sleeps
  /// notices late. Later it is: it has gone on, or come back.
  Nanoseconds aftermath = std::chrono::seconds(30);
  /// Somebody asks MPS for the clients of domains (note_clients); until it has answered they are not known.
  bool lists_clients = false;
};

/// Merges signals without a clock and without I/O: the times are those of the signals, and of advance(). The
/// signals of one source are to come in the order of their times.
class Merger {
 public:
  explicit Merger(MergerOptions options = {}) : options_(options) {}

  void watch(const WatchedProcess& process);
  /// A watched process has come to be known in that domain. Judges again whatever is open; returns what
  /// somebody has been told of.
  std::vector<Incident> place(pid_t pid, const std::string& domain, std::optional<std::uint32_t> gpu);
  void set_uvm_heard(pid_t pid, bool heard, Monotonic now);
  /// Tells that some UVM events of the process are lost, so that their silence says nothing. Judges again
  /// whatever is open.
  void set_uvm_missed(pid_t pid, Monotonic when);
  /// A process ended, also where that is no fault; its exit as a signal says the same.
  void set_ended(pid_t pid, Monotonic when);
  const WatchedProcesses& processes() const { return processes_; }
  /// Takes all clients of a domain, as MPS answered when it was asked at `asked`. Judges again whatever is
  /// open; returns what somebody has been told of.
  std::vector<Incident> note_clients(const std::string& domain, Monotonic asked,
                                     const std::vector<pid_t>& pids, Monotonic now);
  /// Somebody says that this process is a client, or was one until now.
  void note_client(const std::string& domain, pid_t pid, Monotonic now);
  /// That client is the watcher's own, and is to blame for nothing; until a process of that number is
  /// watched.
  void note_own_client(pid_t pid);
  /// Domains of which a list is wanted that is younger than a fault of theirs.
  std::set<std::string> unlisted_domains() const;

  /// A fault of that domain is not over: its domain is held, and falls later, with more signals of the same
  /// fault. Until that is taken back an incident there takes in whatever fits, and after it for the window.
  void set_going_on(const std::string& domain, bool goes_on, Monotonic now);

  /// The incident that the signal belongs to, new or changed; null when it says nothing alone (yet). Valid
  /// until the next call.
  const Incident* take(const Fault& told);
  /// Closes what `now` has put behind its window; returns what was closed and had been told of.
  std::vector<Incident> advance(Monotonic now);
  /// Returns when advance() has something to do next; empty: nothing is open.
  std::optional<Monotonic> next_closing() const;
  /// Closes everything.
  std::vector<Incident> finish();

 private:
  struct Open {
    Incident incident;
    Monotonic last{};
    bool told = false;  ///< the incident was conclusive at some time, so that somebody knows of it
  };

  Open* find(const Fault& signal);
  bool goes_on(const Open& open) const { return going_on_.contains(open.incident.domain); }
  std::optional<int> fit(const Open& open, const Fault& signal) const;
  void add(Open& open, const Fault& signal);
  void summarize(Incident& incident);
  std::vector<Incident> judge_again();
  void strike(const Incident& incident);
  bool is_struck(const Fault& signal) const;
  bool is_of_newcomer(const Incident& incident, const Fault& signal) const;
  void gather_exits(Open& into, const Fault& signal);

  MergerOptions options_;
  WatchedProcesses processes_;
  ClientBook clients_;
  std::set<pid_t> own_clients_;
  std::vector<Open> open_;
  std::set<std::string> going_on_;  ///< domains
  std::uint64_t next_id_ = 1;
};

}  // namespace firebreak::fault
