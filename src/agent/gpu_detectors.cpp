// SPDX-License-Identifier: Apache-2.0
#include "agent/gpu_detectors.h"

#include <spdlog/spdlog.h>

#include <utility>

namespace firebreak::agent {
namespace {

/// What the agent decides on. An exit is told as such, and whether it was a fault is for the agent to say,
/// who knows who has finished; the others come later than these two, or are hints.
bool is_acted_on(fault::FaultSource source) {
  return source == fault::FaultSource::Xid || source == fault::FaultSource::UvmEvent;
}

}  // namespace

watch::WatcherOptions GpuDetectors::options() const {
  watch::WatcherOptions options;
  options.nvml_library = nvml_library_;
  for (const std::string& domain : domains_.names()) {
    const std::string directory = domains_.log_directory(domain);
    options.mps_log_directories.push_back(directory);
    options.domain_of_log_directory[directory] = domain;
  }
  options.domain_of_server = [this](pid_t pid) { return domains_.domain_of_server(pid); };
  return options;
}

std::vector<std::string> GpuDetectors::start(OnFault on_fault, OnExit on_exit) {
  watch::WatcherCallbacks callbacks;
  callbacks.on_signal = [tell = std::move(on_fault)](const fault::Fault& fault) {
    if (is_acted_on(fault.source)) tell(fault);
  };
  callbacks.on_incident = [this](const fault::Incident& incident) { log(incident); };
  callbacks.on_exit = [tell = std::move(on_exit)](const watch::ProcessExit& exit) { tell(exit.pid); };
  watcher_ = std::make_unique<watch::Watcher>(loop_, kernel_, clock_, options(), std::move(callbacks));
  watcher_->start();
  std::vector<std::string> missing;
  for (const watch::SourceState& source : watcher_->sources()) {
    const std::string line = watch::text_of(source);
    if (source.missing && is_acted_on(source.source)) missing.push_back(line);
    spdlog::info("{}", line);
  }
  return missing;
}

void GpuDetectors::log(const fault::Incident& incident) {
  const auto change = news_.of(incident);
  if (!change) return;
  const auto level = *change == watch::Change::Closed ? spdlog::level::info : spdlog::level::warn;
  spdlog::log(level, "{}", watch::text_of(incident, *change));
}

Status GpuDetectors::follow(const watch::Target& target) { return watcher_->follow(target); }

Status GpuDetectors::follow_progress(pid_t pid, watch::ReadProgress read) {
  return watcher_->follow_progress(pid, std::move(read));
}

void GpuDetectors::note_output(pid_t pid, std::string_view text) { watcher_->note_output(pid, text); }

void GpuDetectors::expect_exit(pid_t pid) { watcher_->expect_exit(pid); }

}  // namespace firebreak::agent
