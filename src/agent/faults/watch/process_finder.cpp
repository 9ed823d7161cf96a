// SPDX-License-Identifier: Apache-2.0
#include "agent/faults/watch/process_finder.h"

#include <utility>

namespace firebreak::watch {
namespace {

/// The lines of one fault come within milliseconds: one look serves them all.
constexpr Nanoseconds fresh_enough = std::chrono::milliseconds(10);

}  // namespace

ProcessFinder::ProcessFinder(os::EventLoop& loop, os::Kernel& kernel, const Clock& clock,
                             ProcessFinderOptions options, ProcessFinderCallbacks callbacks,
                             WatcherOptions watcher, WatcherCallbacks watcher_callbacks)
    : loop_(loop),
      clock_(clock),
      options_(std::move(options)),
      callbacks_(std::move(callbacks)),
      scan_(kernel, options_.scan),
      watcher_(loop, kernel, clock, ours(std::move(watcher)), ours(std::move(watcher_callbacks))) {}

WatcherOptions ProcessFinder::ours(WatcherOptions options) {
  options.places.domain_of_server = [this](pid_t pid) { return domain_of_server(pid); };
  return options;
}

WatcherCallbacks ProcessFinder::ours(WatcherCallbacks callbacks) {
  callbacks.on_exit = [this, tell = std::move(callbacks.on_exit)](const ProcessExit& exit) {
    followed_.erase(exit.pid);
    if (tell) tell(exit);
  };
  return callbacks;
}

Status ProcessFinder::follow(pid_t pid) {
  const GpuProcess process = scan_.describe(pid);
  const Status followed = follow(process);
  if (!followed && followed.error().code == ErrorCode::NotFound) {
    return fail(ErrorCode::NotFound, "there is no process " + std::to_string(pid));
  }
  if (!followed) return followed;
  if (!process.domain.empty()) domains_.insert(process.domain);
  if (callbacks_.on_process) callbacks_.on_process(process, {});
  return {};
}

Status ProcessFinder::look_around(Whom whom) {
  whom_ = whom;
  if (whom == Whom::SameDomains && domains_.empty()) return {};
  look();
  auto timer = loop_.every(options_.period, [this] { look(); });
  if (!timer) return propagate(timer);
  next_look_ = std::move(*timer);
  return {};
}

bool ProcessFinder::is_wanted(const std::string& domain) const {
  return whom_ == Whom::Everybody || domains_.contains(domain);
}

void ProcessFinder::look() {
  last_look_ = clock_.now();
  const ProcessScan::Found found = scan_.look();
  for (const MpsServer& server : found.servers) {
    if (is_wanted(server.domain)) note_server(server);
  }
  for (const GpuProcess& process : found.processes) {
    if (!is_wanted(process.domain) || followed_.contains(process.pid)) continue;
    const Status followed = follow(process);
    if (callbacks_.on_process) callbacks_.on_process(process, followed);
  }
}

Status ProcessFinder::follow(const GpuProcess& process) {
  Status followed = watcher_.follow({process.pid, 0, process.domain, process.name});
  if (followed) followed_.insert(process.pid);
  return followed;
}

void ProcessFinder::note_server(const MpsServer& server) {
  if (!servers_.try_emplace(server.pid, server.domain).second) return;
  auto log = logs_.find(server.log_directory);
  if (log == logs_.end()) {
    Status heard = watcher_.add(mps_log_in(server.log_directory, server.domain));
    log = logs_.emplace(server.log_directory, std::move(heard)).first;
  }
  if (callbacks_.on_server) callbacks_.on_server(server, log->second);
}

/// Asked when a fault is told of a process that is not followed.
std::optional<std::string> ProcessFinder::domain_of_server(pid_t pid) {
  // Somebody who came up since the last look may be the culprit: without him another would look like it.
  if (next_look_ && clock_.now() - last_look_ > fresh_enough) look();
  if (const auto known = servers_.find(pid); known != servers_.end()) return known->second;
  const auto server = scan_.server(pid);
  return server ? std::optional(server->domain) : std::nullopt;
}

}  // namespace firebreak::watch
