// SPDX-License-Identifier: Apache-2.0
/// The command line of firebreak-k8s.
#pragma once

#include <CLI/CLI.hpp>
#include <cstdint>
#include <string>

#include "ground/platform/machine.h"

namespace firebreak::k8s {

struct PluginOptions {
  std::string socket_path = "/run/firebreak/status.sock";
  std::string kubelet_folder = "/var/lib/kubelet/device-plugins";
  std::string shared_memory = "/dev/shm";
  std::string guard_library;
  std::string kubeconfig;
  std::string node_name;
  std::uint32_t seats = 4;
  std::uint32_t agent_patience_s = 30;
  bool without_guard = false;
};

inline void describe_command_line(CLI::App& app, PluginOptions& options) {
  app.description(
      "Offers seats in the Firebreak agent's MPS domains to this machine's kubelet, as firebreak.dev/seat. "
      "Tells the cluster's API server of faults: by a condition of this node, events, and an annotation of "
      "the "
      "pod that caused one.");
  app.set_version_flag("--version", "firebreak-k8s " + platform::version());
  app.add_option("--socket", options.socket_path, "Where the agent tells its status to observers")
      ->capture_default_str();
  app.add_option("--kubelet-folder", options.kubelet_folder,
                 "The folder in which the kubelet has kubelet.sock")
      ->capture_default_str();
  app.add_option("--seats", options.seats, "How many seats each domain has")
      ->capture_default_str()
      ->check(CLI::Range(1U, 1000U));
  app.add_option("--agent-patience-s", options.agent_patience_s,
                 "So long an agent may be away, as in an upgrade, before no seat is healthy")
      ->capture_default_str()
      ->check(CLI::Range(0U, 86'400U));
  app.add_option(
      "--kubeconfig", options.kubeconfig,
      "How to reach the API server, in the form of kubectl's; by default /etc/firebreak/kubeconfig where "
      "that is there, else the service account of the pod in which this runs, else nobody is told");
  app.add_option("--node-name", options.node_name,
                 "What the cluster calls this node; by default its host name")
      ->envname("NODE_NAME");
  app.add_option("--guard-library", options.guard_library,
                 "Where the guard is on the host; by default it is looked for beside this program");
  app.add_flag("--no-guard", options.without_guard, "Containers do not load the guard");
  app.add_option("--shm", options.shared_memory,
                 "The host's folder that is /dev/shm in containers, which MPS needs; empty: their own")
      ->capture_default_str();
}

}  // namespace firebreak::k8s
