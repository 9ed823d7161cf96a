// SPDX-License-Identifier: Apache-2.0
/// The records of exceptions in parked domains, for `firebreak report` (agent/parking/park/evidence.h).
#pragma once

#include <sys/types.h>

#include <cstddef>
#include <deque>
#include <functional>
#include <map>
#include <string>
#include <utility>
#include <vector>

#include "agent/faults/fault/core_dump.h"
#include "agent/parking/park/dump_pipe.h"
#include "agent/parking/park/evidence_folder.h"
#include "agent/tenants/counts.h"
#include "ground/base/clock.h"
#include "ground/os/event_loop.h"
#include "ground/os/kernel.h"
#include "ground/os/owned_file.h"

namespace firebreak::agent {

/// Belongs to the loop's thread. A report is there from the moment when its culprit is named, and is written
/// anew as more becomes known. What cannot be written is logged, and does no harm.
class ParkedIncidents {
 public:
  /// `on_report`: that exception's report has been begun.
  using OnReport = std::function<void(const std::string& domain, const std::string& id)>;
  ParkedIncidents(os::EventLoop& loop, os::Kernel& kernel, const Clock& clock, const std::string& folder,
                  OnReport on_report)
      : loop_(loop),
        kernel_(kernel),
        clock_(clock),
        folder_(folder),
        path_(folder),
        on_report_(std::move(on_report)) {}

  /// The folder is there.
  void open();
  /// Names of clients by pid.
  using Clients = std::map<pid_t, std::string>;
  /// The first word of an exception in that domain.
  void begin(const std::string& domain, const Clients& clients);
  void note(const std::string& domain, const std::string& what);
  /// Notes that the process has ended.
  void note_exit(const std::string& domain, pid_t pid);
  void name(const std::string& domain, pid_t pid, const std::string& name,
            const fault::CoreDumpException& exception);
  /// Keeps a dump, which names its process itself. A long one is written in pieces, one in a turn of the
  /// loop.
  void keep_dump(const std::string& domain, pid_t pid, const std::string& name, park::BudgetedBytes dump,
                 bool is_cut);
  /// The domain has fallen. Its culprits' dumps may still come.
  void end(const std::string& domain);
  /// The fault has its account: its reports say whom it touched in the same words.
  void settle(const PastFault& fault);

 private:
  struct Culprit {
    park::Evidence evidence;
    uid_t user = 0;
  };
  struct Incident {
    Monotonic since{};
    std::string when;
    std::string stamp;  ///< how ids begin
    bool is_over = false;
    std::vector<park::Moment> timeline;
    Clients clients;
    std::map<pid_t, Culprit> culprits;
  };

  /// A dump that is being written.
  struct Dump {
    std::string id;
    pid_t pid = 0;
    os::OwnedFile file;
    park::BudgetedBytes bytes;
    std::size_t left_bytes = 0;
    std::size_t written_bytes = 0;
  };

  Incident* incident_of(const std::string& domain);
  Culprit& culprit_of(Incident& incident, const std::string& domain, pid_t pid, const std::string& name);
  void write(Incident& incident, Culprit& culprit);
  void write_dump(const Culprit& culprit, park::BudgetedBytes bytes);
  void write_piece();
  void write_all(Incident& incident);
  uid_t user_of(pid_t pid);

  os::EventLoop& loop_;
  os::Kernel& kernel_;
  const Clock& clock_;
  park::EvidenceFolder folder_;
  std::string path_;
  OnReport on_report_;
  std::map<std::string, Incident> incidents_;  ///< the last one of each domain
  std::deque<Dump> dumps_;
  os::Watch next_piece_;
};

}  // namespace firebreak::agent
