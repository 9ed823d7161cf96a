// SPDX-License-Identifier: Apache-2.0
#include "agent/faults/watch/detectors.h"

#include <spdlog/spdlog.h>

#include <utility>

#include "agent/faults/watch/core_dump_detector.h"
#include "agent/faults/watch/exit_detector.h"
#include "agent/faults/watch/isolation_detector.h"
#include "agent/faults/watch/mps_log_detector.h"
#include "agent/faults/watch/nvml_detector.h"
#include "agent/faults/watch/progress_detector.h"
#include "agent/faults/watch/uvm_detector.h"
#include "agent/faults/watch/xid_detector.h"

namespace firebreak::watch {
namespace {

using fault::FaultSource;
using Made = std::vector<std::unique_ptr<Detector>>;

template <class T, class... Arguments>
Made one(Arguments&&... arguments) {
  Made made;
  made.push_back(std::make_unique<T>(std::forward<Arguments>(arguments)...));
  return made;
}

/// Made with nothing but a Workplace.
template <class T>
Made simple(const Workplace& at) {
  return one<T>(at);
}

EndCallback warn(const std::string& what) {
  return [what](const Error& error) { spdlog::warn("{}: {}", what, to_string(error)); };
}

Made xid(const Workplace& at) {
  XidDetectorOptions options;
  options.reading.idle_period = at.options.xid_sweep_without_bell;
  return one<XidDetector>(at.loop, at.kernel, at.clock, options, at.on_fault, at.on_gap);
}

Made isolation(const Workplace& at) {
  const auto tell = [&at](const IsolationEvent& event) {
    if (const auto fault = fault_of(event, at.clock.now())) at.on_fault(*fault);
  };
  return one<IsolationDetector>(at.loop, at.kernel, tell, warn("no events of fault isolation any more"));
}

Made nvml(const Workplace& at) {
  const auto open = [library = at.options.nvml_library] { return NvmlLibrary::open(library); };
  return one<NvmlDetector>(at.loop, at.clock, open, at.on_fault, warn("NVML"));
}

Made mps_log(const Workplace& at, const std::string& directory, const std::string& domain) {
  MpsLogDetector::Options options;
  options.directory = directory;
  options.domain = domain;
  options.on_arrival = [&at, domain](std::optional<pid_t> client) { at.on_client(domain, client); };
  options.on_gap = at.on_gap;
  return one<MpsLogDetector>(at.loop, at.kernel, at.clock, options, at.on_fault);
}

Made mps_logs(const Workplace& at) {
  Made made;
  for (const std::string& directory : at.options.mps_log_directories) {
    const auto domain = at.options.domain_of_log_directory.find(directory);
    const bool named = domain != at.options.domain_of_log_directory.end();
    made.push_back(std::move(mps_log(at, directory, named ? domain->second : std::string()).front()));
  }
  return made;
}

bool always(const WatcherOptions&) { return true; }

}  // namespace

const DetectorTable& all_detectors() {
  static const DetectorTable table{
      {FaultSource::ProcessExit, Listed::Never, always, simple<ExitDetector>},
      {FaultSource::Xid, Listed::Always, &WatcherOptions::xid, xid},
      {FaultSource::UvmEvent, Listed::Always, &WatcherOptions::uvm, simple<UvmDetector>},
      {FaultSource::Isolation, Listed::WhereItIs, &WatcherOptions::isolation, isolation},
      {FaultSource::Nvml, Listed::Always,
       [](const WatcherOptions& options) { return !options.nvml_library.empty(); }, nvml},
      {FaultSource::MpsLog, Listed::Always, always, mps_logs},
      {FaultSource::CoreDump, Listed::Never, always, simple<CoreDumpDetector>},
      {FaultSource::Progress, Listed::Never, always, simple<ProgressDetector>},
  };
  return table;
}

DetectorRow mps_log_in(const std::string& directory, const std::string& domain) {
  return {FaultSource::MpsLog, Listed::Never, always,
          [=](const Workplace& at) { return mps_log(at, directory, domain); }};
}

}  // namespace firebreak::watch
