// SPDX-License-Identifier: Apache-2.0
/// The table of all detectors: one row each, and nobody else knows them by name.
#pragma once

#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "agent/faults/watch/detector.h"

namespace firebreak::watch {

/// Says which of them a Watcher lists as heard or not.
enum class Listed {
  Always,
  WhereItIs,  ///< listed where it is: most machines have none, and nobody misses it
  Never,      ///< not listed: it serves single processes
};

struct DetectorRow {
  fault::FaultSource source = fault::FaultSource::Xid;
  Listed listed = Listed::Always;
  std::function<bool(const WatcherOptions&)> is_wanted;
  /// One, or one for each place where there is something to hear. They use the Workplace as long as they
  /// live.
  std::function<std::vector<std::unique_ptr<Detector>>(const Workplace&)> make;
};

using DetectorTable = std::vector<DetectorRow>;

/// Processes are told to them in this order: the first says whether there is such a process.
const DetectorTable& all_detectors();

/// The log of one more MPS server, for Watcher::add().
DetectorRow mps_log_in(const std::string& directory, const std::string& domain);

}  // namespace firebreak::watch
