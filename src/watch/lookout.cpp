// SPDX-License-Identifier: Apache-2.0
#include "watch/lookout.h"

#include <utility>

namespace firebreak::watch {

Lookout::Lookout(os::EventLoop& loop, os::Kernel& kernel, const Clock& clock, LookoutOptions options,
                 LookoutCallbacks callbacks, WatcherOptions watcher, WatcherCallbacks watcher_callbacks)
    : loop_(loop),
      options_(std::move(options)),
      callbacks_(std::move(callbacks)),
      scan_(kernel, options_.scan),
      watcher_(loop, kernel, clock, ours(std::move(watcher)), ours(std::move(watcher_callbacks))) {}

WatcherOptions Lookout::ours(WatcherOptions options) {
  options.domain_of_server = [this](pid_t pid) { return domain_of_server(pid); };
  return options;
}

WatcherCallbacks Lookout::ours(WatcherCallbacks callbacks) {
  callbacks.on_exit = [this, tell = std::move(callbacks.on_exit)](const ProcessExit& exit) {
    followed_.erase(exit.pid);
    if (tell) tell(exit);
  };
  return callbacks;
}

Status Lookout::follow(pid_t pid) {
  const GpuProcess process = scan_.describe(pid);
  if (Status followed = follow(process); !followed) return followed;
  if (process.domain.empty()) return {};
  for (const MpsServer& server : scan_.servers()) {
    if (server.domain == process.domain) note_server(server);
  }
  return {};
}

Status Lookout::follow_everybody() {
  look();
  auto timer = loop_.every(options_.period, [this] { look(); });
  if (!timer) return propagate(timer);
  next_look_ = std::move(*timer);
  return {};
}

void Lookout::look() {
  const ProcessScan::Found found = scan_.look();
  for (const MpsServer& server : found.servers) note_server(server);
  // One that is gone again is told of like one that may not be followed.
  for (const GpuProcess& process : found.processes) (void)follow(process);
}

Status Lookout::follow(const GpuProcess& process) {
  if (followed_.contains(process.pid)) return {};
  Status followed = watcher_.follow({process.pid, 0, process.domain, process.name});
  if (followed) followed_.insert(process.pid);
  if (callbacks_.on_process) callbacks_.on_process(process, followed);
  return followed;
}

void Lookout::note_server(const MpsServer& server) {
  if (!servers_.try_emplace(server.pid, server.domain).second) return;
  auto log = logs_.find(server.log_directory);
  if (log == logs_.end()) {
    Status heard = watcher_.add_mps_log_directory(server.log_directory, server.domain);
    log = logs_.emplace(server.log_directory, std::move(heard)).first;
  }
  if (callbacks_.on_server) callbacks_.on_server(server, log->second);
}

std::optional<std::string> Lookout::domain_of_server(pid_t pid) {
  if (const auto known = servers_.find(pid); known != servers_.end()) return known->second;
  // It may have come up since the last look.
  const auto server = scan_.server(pid);
  return server ? std::optional(server->domain) : std::nullopt;
}

}  // namespace firebreak::watch
