// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <functional>
#include <map>
#include <string>
#include <vector>

#include "agent/faults/fault/merger.h"
#include "agent/faults/watch/target.h"
#include "ground/base/clock.h"
#include "ground/os/event_loop.h"

namespace firebreak::watch {

struct IncidentKeeperOptions {
  Nanoseconds merge_window = std::chrono::milliseconds(1000);
  /// Callbacks as in WatcherOptions; may be empty.
  std::function<void(const std::string& domain)> ask_for_clients = nullptr;
};

/// A fault::Merger on a loop: it closes incidents when their time has come, and has MPS asked for clients
/// while somebody is to be named. Lives on the loop's thread.
class IncidentKeeper {
 public:
  using Tell = std::function<void(const fault::Incident&)>;

  /// `tell` may be empty, and is called with each incident that is new, has changed or is closed.
  IncidentKeeper(os::EventLoop& loop, const Clock& clock, IncidentKeeperOptions options, Tell tell);

  void take(const fault::Fault& fault);
  void follow(const Target& target);
  /// One that is followed has come to be known in its domain.
  void place(const Target& target);
  void set_ended(pid_t pid, Monotonic when) { merger_.set_ended(pid, when); }
  void set_uvm_heard(pid_t pid, bool heard) { merger_.set_uvm_heard(pid, heard, clock_.now()); }
  void set_uvm_missed(pid_t pid) { merger_.set_uvm_missed(pid, clock_.now()); }
  /// Somebody has become a client of a domain; empty: its number was not told.
  void note_client(const std::string& domain, std::optional<pid_t> client);
  void note_own_client(pid_t pid) { merger_.note_own_client(pid); }
  void note_clients(const std::string& domain, Monotonic asked, const std::vector<pid_t>& pids);
  /// fault::Merger::set_going_on().
  void set_going_on(const std::string& domain, bool goes_on);
  /// Closes what is open.
  void finish();

 private:
  void ask_for_clients();
  void close_due();
  void wait_for_closing();
  void tell(const std::vector<fault::Incident>& incidents);

  os::EventLoop& loop_;
  const Clock& clock_;
  IncidentKeeperOptions options_;
  Tell tell_;
  fault::Merger merger_;
  os::Watch closing_;
  std::map<std::string, Monotonic> clients_asked_;  ///< domains that were asked for clients, without an
                                                    ///< answer yet
};

}  // namespace firebreak::watch
