// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <functional>
#include <map>
#include <memory>
#include <string>
#include <thread>
#include <vector>

#include "agent/domains/mps/domain_keeper.h"
#include "agent/loop/surroundings.h"
#include "agent/root/privileged_helper.h"
#include "ground/os/event_loop.h"
#include "ground/os/kernel.h"

namespace firebreak::agent {

/// Two MPS domains on each GPU: "a" and "b", or "0a", "0b", "1a" and so on where there are several, each with
/// directories under the agent's own. And "anchor" where programs get spare driver instances: it is no domain
/// that anybody is placed in, and none of names() and reports(). After a fault there it is made anew at once:
/// whoever is its client has work in another one. Control commands can take seconds, so each
/// domain has a thread of its own, and one more each takes a client off the GPU; the loop only reads what
/// they found.
class MpsDomains final : public Domains {
 public:
  struct Options {
    std::string directory;
    std::string control_program;
    Environment environment;        ///< variables for daemons and servers
    std::vector<std::string> gpus;  ///< UUIDs; empty: the one that CUDA finds
    /// Daemons, and with them the tenants, go on when the agent ends; the next one takes them over. Those
    /// that this object has started, and nobody has used, end with it: an agent that cannot start leaves
    /// none.
    bool outlive_us = false;
    os::LogLimits log;
    bool anchors = false;             ///< a domain for them on each GPU
    std::optional<gid_t> group = {};  ///< group whose members may be clients, besides root and our user
    /// Starts a domain's daemon somewhere else than as our child (mps::DomainOptions); on a thread of the
    /// domain's.
    std::function<Result<pid_t>(const std::string& domain, const mps::DaemonStart&)> start_apart = nullptr;
    /// Called on a thread of the domain's with each daemon that is our child, before it has a server.
    std::function<void(const std::string& domain, pid_t daemon)> on_daemon = nullptr;
    /// Helper whose the daemons are; empty: they are ours.
    std::shared_ptr<PrivilegedHelper> helper = nullptr;
  };

  /// The two references outlive it.
  MpsDomains(os::EventLoop& loop, os::Kernel& kernel, Options options);
  ~MpsDomains() override;

  Status start(Callbacks callbacks) override;
  void end() override;
  std::vector<std::string> names() const override;
  std::vector<mps::DomainReport> reports() const override;
  void note_fault(const std::string& domain) override;
  void note_fall(const std::string& domain) override;
  void set_gpu_needs(const std::string& domain, const std::string& needs) override;
  Environment environment(const std::string& domain) const override;
  Environment anchor_environment(const std::string& domain) const override;
  std::vector<mps::DomainReport> anchor_reports() const override;
  std::string log_directory(const std::string& domain) const override;
  std::optional<std::string_view> domain_of_server(pid_t pid) override;
  void refresh_servers() override;
  void look_for_clients(const std::string& domain) override;
  void look_for_faults() override;
  Status mark_parked(const std::string& domain, bool is_parked) override;
  void terminate_client(const std::string& domain, pid_t client, Milliseconds timeout,
                        std::function<void(Status)> done) override;

 private:
  /// The name of a domain, and the GPU that it has.
  struct Plan {
    std::string name;
    std::string gpu;
  };

  std::string directory_of(const std::string& domain) const;
  Status start_one(const Plan& plan);
  mps::KeeperOptions keeper_options(const Plan& plan) const;
  Status start_anchors();
  void end_forsaken();
  void name_server(const std::string& domain, pid_t server);
  mps::DomainReport completed(mps::DomainReport report) const;
  mps::DomainKeeper* keeper_of(const std::string& domain) const;

  os::EventLoop& loop_;
  os::Kernel& kernel_;
  Options options_;
  Callbacks callbacks_;
  std::vector<Plan> plans_;
  std::vector<std::unique_ptr<mps::DomainKeeper>> keepers_;  ///< the same ones between start and end
  std::map<std::string, std::unique_ptr<mps::DomainKeeper>> anchors_;  ///< domains by GPU
  std::map<std::string, std::string> gpu_needs_;                       ///< by GPU, of those that are not well
  std::uint64_t next_termination_ = 0;
  std::map<std::uint64_t, std::thread> terminations_;  ///< terminations under way
};

}  // namespace firebreak::agent
