// SPDX-License-Identifier: Apache-2.0
/// A Watcher that finds its processes and their MPS domains itself.
#pragma once

#include <functional>
#include <map>
#include <optional>
#include <set>
#include <string>

#include "agent/faults/watch/process_scan.h"
#include "agent/faults/watch/watcher.h"
#include "ground/os/event_loop.h"

namespace firebreak::watch {

struct ProcessFinderOptions {
  ScanOptions scan;
  /// Pause between two looks at /proc; what they cost: bench/watch_idle_benchmark.cpp.
  Nanoseconds period = std::chrono::milliseconds(500);
};

struct ProcessFinderCallbacks {
  /// A process that is followed from now on, or why it cannot be.
  std::function<void(const GpuProcess&, const Status&)> on_process;
  /// An MPS server that came up, and whether its log is heard.
  std::function<void(const MpsServer&, const Status&)> on_server;
};

enum class Whom {
  Everybody,    ///< everybody who uses the GPU
  SameDomains,  ///< processes that share an MPS domain, and with it its faults, with one that is followed
};

/// Lives on the loop's thread. Callbacks must not destroy it.
class ProcessFinder {
 public:
  /// Makes a finder; domain_of_server of `watcher` is set here.
  ProcessFinder(os::EventLoop& loop, os::Kernel& kernel, const Clock& clock, ProcessFinderOptions options,
                ProcessFinderCallbacks callbacks, WatcherOptions watcher, WatcherCallbacks watcher_callbacks);
  ProcessFinder(const ProcessFinder&) = delete;
  ProcessFinder& operator=(const ProcessFinder&) = delete;

  Watcher& watcher() { return watcher_; }
  /// Follows one process. Before look_around(). NotFound: there is no such process.
  Status follow(pid_t pid);
  /// Finds MPS servers, listens to their logs, and follows whom else it takes: now, and from now on.
  Status look_around(Whom whom);
  /// Processes that may use the GPU and that we may not look into.
  std::size_t refused() const { return scan_.refused(); }

 private:
  WatcherOptions ours(WatcherOptions options);
  WatcherCallbacks ours(WatcherCallbacks callbacks);
  void look();
  Status follow(const GpuProcess& process);
  bool is_wanted(const std::string& domain) const;
  void note_server(const MpsServer& server);
  std::optional<std::string> domain_of_server(pid_t pid);

  os::EventLoop& loop_;
  const Clock& clock_;
  ProcessFinderOptions options_;
  ProcessFinderCallbacks callbacks_;
  ProcessScan scan_;
  std::optional<Whom> whom_;       ///< empty until look_around()
  std::set<std::string> domains_;  ///< domains of the processes that were asked for
  Monotonic last_look_{};
  std::set<pid_t> followed_;
  std::map<pid_t, std::string> servers_;  ///< servers, also those that ended: their faults may still be told
  std::map<std::string, Status> logs_;    ///< logs by directory
  Watcher watcher_;
  os::Watch next_look_;
};

}  // namespace firebreak::watch
