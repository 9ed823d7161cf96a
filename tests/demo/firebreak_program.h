// SPDX-License-Identifier: Apache-2.0
/// Runs the project's programs the way a user does, and looks for what they leave behind.
#pragma once

#include <functional>
#include <nlohmann/json.hpp>
#include <string>
#include <utility>
#include <vector>

#include "ground/os/file.h"
#include "ground/os/program.h"
#include "ground/os/real_kernel.h"

namespace firebreak::tests {

/// A private place to run in. Every process that was started in it, directly or not, carries its mark.
class Sandbox {
 public:
  Sandbox();

  using Environment = std::vector<std::pair<std::string, std::string>>;
  /// What the programs run with, besides our own: the software GPU, and the sandbox's mark.
  Environment environment() const;
  /// Runs bin/PROGRAM on the software GPU to its end. Fails the test when it takes longer than `timeout`.
  os::ProgramResult run(const std::string& program, std::vector<std::string> arguments,
                        Environment extra = {}, Milliseconds timeout = Milliseconds(240'000));
  /// Starts it and returns at once; it is killed with the sandbox.
  pid_t start(const std::string& program, std::vector<std::string> arguments, Environment extra = {});
  void signal(pid_t pid, int number);
  /// Reaps what start() started; fails the test when it does not end in time.
  os::ExitStatus wait(pid_t pid);

  /// Asks that agent, with a pause, until it answers. The test's own time limit bounds it, here and below.
  void await_agent(const std::string& socket);
  /// The same until a tenant is there and as wanted; returns what the agent says of it.
  nlohmann::json await_tenant(const std::string& socket, const std::string& name,
                              const std::function<bool(const nlohmann::json&)>& wanted);

  /// A path for files of the test, outside of what is examined.
  std::string file(const std::string& name) const { return files_.path() + "/" + name; }
  /// What the programs left: "process 12 (firebreakd)", "/tmp/…/fb-x", "/dev/shm/y"; empty: nothing.
  std::vector<std::string> left_behind();
  /// The same once all is gone, or after 20 s: whoever is killed by its parent's end takes a moment.
  std::vector<std::string> left_behind_at_last();
  ~Sandbox();

 private:
  os::SpawnRequest request(const std::string& program, std::vector<std::string> arguments,
                           Environment extra) const;
  std::vector<std::string> names_in(const std::string& folder);  ///< sorted; none where it cannot be read
  std::vector<std::string> marked_processes();

  os::RealKernel kernel_;
  os::TemporaryDirectory files_;
  os::TemporaryDirectory temporary_;  ///< the programs' TMPDIR: empty when all is well
  std::vector<std::string> shared_memory_before_;
  std::vector<std::pair<pid_t, os::Fd>> started_;
};

}  // namespace firebreak::tests
