// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <condition_variable>
#include <functional>
#include <map>
#include <memory>
#include <mutex>
#include <string>
#include <thread>
#include <vector>

#include "agent/surroundings.h"
#include "mps/domain.h"
#include "os/event_loop.h"
#include "os/kernel.h"

namespace firebreak::agent {

/// Two MPS domains, "a" and "b", each with directories under the agent's own. Control commands can take
/// seconds, so a thread of its own asks for the servers, and one more each takes a client off the GPU; the
/// loop only reads what they found.
class MpsDomains final : public Domains {
 public:
  struct Options {
    std::string directory;
    std::string control_program;
    Environment environment;  ///< for daemons and servers
  };

  /// The two references outlive it.
  MpsDomains(os::EventLoop& loop, os::Kernel& kernel, Options options)
      : loop_(loop), kernel_(kernel), options_(std::move(options)) {}
  ~MpsDomains() override;

  Status start() override;
  std::vector<std::string> names() const override;
  Environment environment(const std::string& domain) const override;
  std::string log_directory(const std::string& domain) const override;
  std::optional<std::string> domain_of_server(pid_t pid) override;
  void refresh_servers() override;
  void terminate_client(const std::string& domain, pid_t client, Milliseconds timeout,
                        std::function<void(Status)> done) override;

 private:
  std::string directory_of(const std::string& domain) const;
  void look_for_servers();
  std::optional<std::string> domain_in_environment_of(pid_t pid);

  mps::Domain* domain_named(const std::string& name) const;
  std::vector<pid_t> servers_of(const std::string& domain);

  os::EventLoop& loop_;
  os::Kernel& kernel_;
  Options options_;
  std::vector<std::unique_ptr<mps::Domain>> domains_;  ///< the same ones between start and end
  std::uint64_t next_termination_ = 0;
  std::map<std::uint64_t, std::thread> terminations_;  ///< under way

  std::mutex mutex_;  ///< guards all below
  std::condition_variable wanted_changed_;
  bool wanted_ = false;
  bool ending_ = false;
  std::map<pid_t, std::string> servers_;
  std::map<std::string, Environment> environments_;
  std::thread looking_;
};

}  // namespace firebreak::agent
