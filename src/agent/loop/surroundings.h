// SPDX-License-Identifier: Apache-2.0
/// The agent's needs of the machine around it: detectors that follow processes, and the MPS domains. They are
/// two interfaces, so that the agent's own decisions are tested without a GPU, without MPS and without
/// waiting.
#pragma once

#include <sys/types.h>

#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "agent/domains/mps/domain_keeper.h"
#include "agent/faults/fault/core_dump.h"
#include "agent/faults/fault/fault.h"
#include "agent/faults/fault/incident.h"
#include "agent/faults/strays/stray.h"
#include "agent/faults/watch/progress_detector.h"
#include "agent/faults/watch/target.h"
#include "ground/base/clock.h"
#include "ground/base/result.h"
#include "shared/guard_page/guard_view.h"

namespace firebreak::agent {

using Environment = std::vector<std::pair<std::string, std::string>>;

/// One of the machine's.
struct MachineGpu {
  std::string uuid;
  std::string pci;  ///< as fault::pci_address() writes it
};

/// Detectors for the whole GPU and for single processes. Calls back on the loop's thread.
class Detectors {
 public:
  struct Callbacks {
    /// Takes a fault with its domain and its tenant, as far as they are known (agent/faults/watch/subject.h).
    std::function<void(const fault::Fault&)> on_fault;
    std::function<void(pid_t)> on_exit;
    /// A followed process has initialised CUDA.
    std::function<void(pid_t)> on_gpu_opened;
    /// The first in each block of 2 MiB.
    std::function<void(const strays::Stray&)> on_stray;
    /// The driver contained a fault of a process, which it will kill before long: nobody else was harmed.
    std::function<void(pid_t, const std::string& what)> on_contained;
    /// Takes what a process's guard says of itself, when that is news.
    std::function<void(pid_t, const strays::GuardReport&)> on_guard;
    /// Words of a detector were lost: what they told of is not known.
    std::function<void(const watch::Gap&)> on_gap = nullptr;
    /// Takes what signals make together: new, changed, or closed, after which nothing of it is told any more.
    std::function<void(const fault::Incident&)> on_incident = nullptr;
  };

  virtual ~Detectors() = default;
  /// Starts what watches the whole GPU. Returns one line for each detector that this machine does not offer.
  virtual std::vector<std::string> start(Callbacks callbacks) = 0;
  /// One line for each of these that is not heard at present, and why.
  virtual std::vector<std::string> not_heard() const = 0;
  /// Reports this process's end from now on, and its faults where its memory manager tells them.
  virtual Status follow(const watch::Target& target) = 0;
  /// A followed process is known to be in that domain.
  virtual void place(pid_t pid, const std::string& domain) = 0;
  /// Watches from now on whether a followed process's work goes on. A hang is said, and nothing is decided by
  /// it.
  virtual Status follow_progress(pid_t pid, watch::ReadProgress read) = 0;
  /// A followed process may have more GPU address spaces by now: its drivers come and go.
  virtual void look_again(pid_t pid) = 0;
  /// Takes all clients of a domain, as MPS names them: who is to blame depends on who else was there.
  virtual void note_clients(const std::string& domain, const mps::ClientList& clients) = 0;
  /// That client of a domain is the agent's own, and is to blame for nothing.
  virtual void note_own_client(pid_t /*pid*/) {}
  /// A fault of that domain is not over, since it is parked: what comes until this is taken back is of it.
  virtual void set_going_on(const std::string& /*domain*/, bool /*goes_on*/) {}
  /// Takes what a followed process wrote to its standard error; it may name a fault.
  virtual void note_output(pid_t pid, std::string_view text) = 0;
  /// A core dump of a followed process names an exception of its own.
  virtual void note_exception(pid_t pid, const fault::CoreDumpException& exception) = 0;
  /// Takes the end of that process for no fault, from now on: we bring it about.
  virtual void expect_exit(pid_t pid) = 0;
  /// The guard and the strays of a followed process.
  virtual strays::Summary straying_of(pid_t pid) const = 0;
  /// The guard page of a followed process, also while on_exit tells of its end; null: it has none.
  virtual std::shared_ptr<const guard::GuardView> guard_of(pid_t pid) const = 0;
  /// Says in words what of a followed process is not watched for want of descriptors, and tried again.
  virtual std::vector<std::string> lacks_of(pid_t) const { return {}; }
  /// Looks whether the GPU still has something of a process that is gone: tells in words, some seconds later
  /// at most.
  virtual void look_for_remains(pid_t pid, std::function<void(const std::string&)> tell) = 0;
};

/// The MPS domains, of one GPU or several.
class Domains {
 public:
  virtual ~Domains() = default;
  /// These are called on the loop's thread.
  struct Callbacks {
    /// An MPS server of that domain has ended, or was found in FAULT.
    std::function<void(const std::string& domain)> on_clients_lost;
    /// Takes an MPS server of that domain that was not known.
    std::function<void(const std::string& domain, pid_t server)> on_server;
    /// Takes all clients of that domain, as MPS names them: also those that nobody has placed there.
    std::function<void(const std::string& domain, const mps::ClientList&)> on_clients = nullptr;
  };
  /// Starts them all; bounded in time.
  virtual Status start(Callbacks callbacks) = 0;
  /// Ends them all, with whoever is there still, and returns when they are gone; bounded in time. Without it
  /// they go on for the next agent. Nothing is asked of them after it.
  virtual void end() = 0;
  virtual std::vector<std::string> names() const = 0;
  /// How each is, in the order of their names.
  virtual std::vector<mps::DomainReport> reports() const = 0;
  /// The domain has had a fault that ends its clients: it takes nobody from now on, until it has drained.
  virtual void note_fault(const std::string& domain) = 0;
  /// The driver has reset it.
  virtual void note_fall(const std::string& domain) = 0;
  /// What its GPU needs before the domain takes anybody, in words; empty: it is well.
  virtual void set_gpu_needs(const std::string& domain, const std::string& needs) = 0;
  /// Returns the variables that a client needs to run there.
  virtual Environment environment(const std::string& domain) const = 0;
  /// Returns the variable's value by which a process says which domain an instance of its driver joins.
  std::string pipe_directory(const std::string& domain) const;
  /// Returns the domain of that directory; empty: nobody's.
  std::string with_pipe_directory(const std::string& path) const;
  /// And in the domain for anchors of that domain's GPU, in which nobody works (docs/how/spare.md). Empty:
  /// there is none.
  virtual Environment anchor_environment(const std::string&) const { return {}; }
  /// How these are, one for each GPU.
  virtual std::vector<mps::DomainReport> anchor_reports() const { return {}; }
  /// Makes or removes the file that says to others that the domain is parked.
  virtual Status mark_parked(const std::string& domain, bool is_parked);
  /// Returns where the domain's server writes its server.log.
  virtual std::string log_directory(const std::string& domain) const = 0;
  /// The domain whose MPS server this process is, as MPS itself says, or was while a fault that names it may
  /// still be told of. A process's environment says nothing: every client has the domain's. Whoever has just
  /// come up may not be known yet: refresh_servers(), and on_server tells. The name lives as long as this
  /// object.
  virtual std::optional<std::string_view> domain_of_server(pid_t pid) = 0;
  /// A client has come up: servers may have started since.
  virtual void refresh_servers() = 0;
  /// Somebody wants to know who the clients of that domain are now: on_clients tells.
  virtual void look_for_clients(const std::string& domain) = 0;
  /// A domain may have had a fault before anybody listened for them.
  virtual void look_for_faults() = 0;
  /// Has MPS take a client off the GPU without harm to the others, and calls back on the loop's thread with
  /// what came of it, possibly long after `timeout`; NotFound: it is no client. Never waits.
  virtual void terminate_client(const std::string& domain, pid_t client, Milliseconds timeout,
                                std::function<void(Status)> done) = 0;
};

/// Makes the file that says that a domain is parked (shared/abi/spare_page.h), or takes it away, with
/// whatever has its name that can be taken away.
Status set_parked_file(const std::string& pipe_directory, bool is_parked);

}  // namespace firebreak::agent
