// SPDX-License-Identifier: Apache-2.0
#include "agent/firebreakd/gpu_detectors.h"

#include <spdlog/spdlog.h>

#include <memory>
#include <utility>

#include "agent/domains/gpus.h"
#include "shared/guard_page/work_view.h"

namespace firebreak::agent {
namespace {

/// True for the sources on which the agent decides. An exit is told as such, and whether it was a fault is
/// for the agent to say, who knows who has finished; the others come later than these two, or are hints.
bool is_decisive(fault::FaultSource source) {
  return source == fault::FaultSource::Xid || source == fault::FaultSource::UvmEvent;
}

void tell_sparse(pid_t pid, const strays::SparseReport& report) {
  const auto level = report.covered_bytes == 0 ? spdlog::level::warn : spdlog::level::info;
  spdlog::log(level, "process {}: {}", pid, describe(report));
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
  options.ask_for_clients = [this](const std::string& domain) { domains_.look_for_clients(domain); };
  options.work_left_by = [this](pid_t pid) { return work_left_by(pid); };
  for (const MachineGpu& gpu : gpus_) options.places.gpus.push_back(gpu.pci);
  const auto known = std::make_shared<Gpus>(gpus_, domains_);
  known->begin();
  options.places.gpu_of_domain = [known](const std::string& domain) { return known->number_of(domain); };
  options.places.domain_of_server = [this](pid_t pid) -> std::optional<std::string> {
    if (const auto domain = domains_.domain_of_server(pid)) return std::string(*domain);
    return std::nullopt;
  };
  return options;
}

/// By its guard's word. One that lies hides its own end alone.
watch::WorkLeft GpuDetectors::work_left_by(pid_t pid) const {
  const auto page = strays_->guard_of(pid);
  switch (page ? guard::state_of(page->work()) : guard::LaunchState::Unknown) {
    case guard::LaunchState::Running:
      return watch::WorkLeft::Running;
    case guard::LaunchState::Ended:
      return watch::WorkLeft::None;
    case guard::LaunchState::Unknown:
      break;
  }
  return watch::WorkLeft::Unknown;
}

watch::WatcherCallbacks GpuDetectors::heard(Callbacks callbacks) {
  watch::WatcherCallbacks heard;
  heard.on_signal = [this, tell = std::move(callbacks.on_fault),
                     tell_contained = std::move(callbacks.on_contained)](const fault::Fault& fault) {
    if (fault.contained && fault.pid) tell_contained(*fault.pid, fault.kind);
    if (is_acted_on(fault)) tell(fault);
  };
  heard.on_uvm_heard = [this, tell = std::move(callbacks.on_gpu_opened)](pid_t pid) {
    if (sparse_ && !strangers_.contains(pid)) sparse_->cover(pid);
    tell(pid);
  };
  heard.on_gap = std::move(callbacks.on_gap);
  heard.on_incident = std::move(callbacks.on_incident);
  heard.on_exit = [this, tell = std::move(callbacks.on_exit)](const watch::ProcessExit& exit) {
    strangers_.erase(exit.pid);
    if (sparse_) sparse_->forget(exit.pid);
    tell(exit.pid);
  };
  return heard;
}

/// UVM still tells of each fault as fatal, and first, where the driver contains faults: what became of it is
/// told next.
bool GpuDetectors::is_acted_on(const fault::Fault& fault) const {
  if (fault.source == fault::FaultSource::UvmEvent) return !watcher_->hears_outcomes();
  if (fault.source != fault::FaultSource::Isolation) return is_decisive(fault.source);
  return fault.conclusive && !fault.contained && watcher_->hears_outcomes();
}

std::vector<std::string> GpuDetectors::start(Callbacks callbacks) {
  strays::GuardCallbacks straying{std::move(callbacks.on_stray), std::move(callbacks.on_guard)};
  strays_ = std::make_unique<strays::GuardedWatch>(loop_, kernel_, std::move(straying));
  if (sparse_wanted_) {
    sparse_ = std::make_unique<strays::SparseCover>(loop_, kernel_, strays::SparseOptions{}, tell_sparse);
  }
  watcher_ = std::make_unique<watch::Watcher>(loop_, kernel_, clock_, options(),
                                              strays_->hear(heard(std::move(callbacks))));
  strays_->attach(*watcher_);
  watcher_->start();
  for (const watch::SourceState& source : watcher_->sources()) spdlog::info("{}", watch::text_of(source));
  return not_heard();
}

std::vector<std::string> GpuDetectors::not_heard() const {
  std::vector<std::string> lines;
  for (const watch::SourceState& source : watcher_->sources()) {
    if (source.missing && is_decisive(source.source)) lines.push_back(watch::text_of(source));
  }
  return lines;
}

Status GpuDetectors::follow(const watch::Target& target) {
  if (target.tenant) {
    strangers_.erase(target.pid);
  } else {
    strangers_.insert(target.pid);
  }
  Status followed = watcher_->follow(target);
  if (followed) strays_->follow(target.pid);
  return followed;
}

void GpuDetectors::place(pid_t pid, const std::string& domain) { watcher_->place(pid, domain); }

Status GpuDetectors::follow_progress(pid_t pid, watch::ReadProgress read) {
  return watcher_->follow_progress(pid, std::move(read));
}

void GpuDetectors::look_again(pid_t pid) { watcher_->look_again(pid); }

void GpuDetectors::note_clients(const std::string& domain, const mps::ClientList& clients) {
  watcher_->note_clients(domain, clients.asked, clients.pids);
}

void GpuDetectors::note_own_client(pid_t pid) { watcher_->note_own_client(pid); }

void GpuDetectors::note_output(pid_t pid, std::string_view text) { watcher_->note_output(pid, text); }

void GpuDetectors::note_exception(pid_t pid, const fault::CoreDumpException& exception) {
  watcher_->note_exception(pid, exception);
}

void GpuDetectors::expect_exit(pid_t pid) { watcher_->expect_exit(pid); }

std::shared_ptr<const guard::GuardView> GpuDetectors::guard_of(pid_t pid) const {
  return strays_->guard_of(pid);
}

void GpuDetectors::look_for_remains(pid_t pid, std::function<void(const std::string&)> tell) {
  remains_.look_for(pid, std::move(tell));
}

std::vector<std::string> GpuDetectors::lacks_of(pid_t pid) const {
  std::vector<std::string> lacks;
  if (watcher_->lacks_uvm_of(pid)) lacks.emplace_back("its UVM events are not heard");
  if (strays_->lacks(pid)) lacks.emplace_back("its guard is not seen");
  return lacks;
}

strays::Summary GpuDetectors::straying_of(pid_t pid) const { return strays_->summary_of(pid); }

}  // namespace firebreak::agent
