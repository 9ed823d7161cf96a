// SPDX-License-Identifier: Apache-2.0
/// A process that stays root's where the agent becomes a user of its own (--user), and does for it what only
/// root may: MPS daemons and the programs that ask them, probes, files that become other users'. It is no
/// shell: what it may be asked stands in agent/root/privileged_question.h, with words that are checked, and
/// where it acts is said by the command line that root gave it. It believes nothing of what it is asked to be
/// well meant.
///
/// How it is spoken to is in ground/os/helper_process.h. Where it may take longer, a child of it does it.
#pragma once

#include <functional>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "agent/domains/mps/daemon_host.h"
#include "agent/root/privileged_question.h"
#include "ground/base/clock.h"
#include "ground/base/result.h"
#include "ground/os/helper_process.h"
#include "ground/os/kernel.h"
#include "ground/os/socket.h"
#include "shared/guard_page/probe_result.h"

namespace firebreak::agent {

/// Thread safe. There is no other one after it: who started it may not start another.
class PrivilegedHelper final : public os::RootFiles {
 public:
  explicit PrivilegedHelper(std::unique_ptr<os::HelperProcess> process) : process_(std::move(process)) {}

  /// Timeout: it is not answered. Unavailable: the helper has ended.
  Result<os::HelperAnswer> ask(const PrivilegedQuestion& question, Milliseconds limit,
                               std::span<const int> attached = {});

  Status give_file(const os::Fd& file, uid_t user) override;
  Status mark_fifo(const os::Fd& fifo, bool is_marked) override;
  Result<os::Fd> open_driver_file(const std::string& name) override;
  /// Names the server to a driver that contains faults.
  Status name_server(const std::string& domain, pid_t server);
  Status mark_parked(const std::string& domain, bool is_parked);

  guard::ProbeResult probe(guard::Probed what) { return probe_by(PrivilegedAct::Probe, what); }
  /// Returns the result where that was tried before.
  guard::ProbeResult known_probe(guard::Probed what) { return probe_by(PrivilegedAct::Known, what); }
  Status make_devices();

  /// A poll() finds it readable once it has ended.
  const os::Fd& process() const { return process_->process(); }

 private:
  guard::ProbeResult probe_by(PrivilegedAct act, guard::Probed what);

  std::unique_ptr<os::HelperProcess> process_;
};

/// A domain whose daemon is root's. `gpu`: empty, or its UUID.
std::unique_ptr<mps::DaemonHost> privileged_daemon_host(std::shared_ptr<PrivilegedHelper> helper,
                                                        std::string domain, std::string gpu);

using PrivilegedActs = std::function<Result<os::HelperAnswer>(const PrivilegedQuestion& question,
                                                              const std::vector<os::Fd>& attached)>;
/// Serves as that process, until nobody has the other end any more. `lock`: nobody but it has that; may be
/// empty.
void serve_privileged(os::Socket& asker, const PrivilegedActs& acts, os::Fd lock);

}  // namespace firebreak::agent
