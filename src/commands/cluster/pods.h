// SPDX-License-Identifier: Apache-2.0
/// Finds which pod a process is of, and what it is called. Pure.
#pragma once

#include <string>
#include <vector>

namespace firebreak::cluster {

/// Finds a process's pod by its control group as the host sees it: kubelets put a pod's containers into one
/// whose name has the pod's uid, with the systemd driver and with cgroupfs, whichever runtime there is.
/// Empty: it is of no pod.
std::string pod_uid_in(const std::string& control_group);

struct Pod {
  std::string space;  ///< its namespace
  std::string name;
  std::string uid;
  /// The word that stands for the uid in the control group of a static pod, which the API server gives a
  /// different uid.
  std::string config_hash = {};
  bool operator==(const Pod&) const = default;
};

/// Reads the pods of an answer to a list. Entries that are no pod are left out.
std::vector<Pod> pods_in(const std::string& body);

/// Null: none of them.
const Pod* find_pod(const std::vector<Pod>& pods, const std::string& uid_in_control_group);

}  // namespace firebreak::cluster
