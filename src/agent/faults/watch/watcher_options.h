// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <sys/types.h>

#include <chrono>
#include <functional>
#include <map>
#include <string>
#include <vector>

#include "agent/faults/watch/subject.h"
#include "ground/base/clock.h"

namespace firebreak::watch {

/// What is known of a process's work on the GPU.
enum class WorkLeft {
  Unknown,
  Running,
  None,
};

struct WatcherOptions {
  bool xid = true;
  /// Period of reads where the kernel log has no bell (rights are missing); 0: wait for poll(), up to 4 ms
  /// longer. What it costs: agent/faults/watch/reading_plan.h.
  Nanoseconds xid_sweep_without_bell{0};
  bool uvm = true;
  /// Listens to nvidia-uvm's fault isolation where it has it (docs/how/isolation.md); elsewhere it is no
  /// source.
  bool isolation = true;
  /// Serviced page faults too, which tell a copy engine's access from an SM's and show contained strays.
  bool uvm_page_faults = false;
  /// Library to load for NVML events; empty: none.
  std::string nvml_library = "libnvidia-ml.so.1";
  /// Directories with an MPS server's server.log.
  std::vector<std::string> mps_log_directories;
  /// Names of MPS domains by such a directory.
  std::map<std::string, std::string> domain_of_log_directory;
  /// An incident takes in no signal later than this after its last one.
  Nanoseconds merge_window = std::chrono::milliseconds(1000);
  Places places;
  /// Asks MPS for all clients of a domain; note_clients() is to be called with the answer. Called when a
  /// client comes, and when a culprit is looked for. Without it nobody is named for being the only one.
  std::function<void(const std::string& domain)> ask_for_clients = nullptr;
  /// Says what work a process left behind that has just ended. Without it that is known of nobody.
  std::function<WorkLeft(pid_t pid)> work_left_by = nullptr;
};

}  // namespace firebreak::watch
