// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <functional>
#include <string>
#include <utility>
#include <vector>

#include "agent/faults/watch/detector.h"
#include "agent/faults/watch/isolation.h"
#include "ground/os/event_loop.h"
#include "ground/os/kernel.h"

namespace firebreak::watch {

using IsolationCallback = std::function<void(const IsolationEvent&)>;

/// Tells the events of nvidia-uvm's fault isolation, of every process of the machine. While it lives, that
/// module cannot be unloaded.
class IsolationDetector final : public Detector {
 public:
  struct Counters {
    std::uint64_t events = 0;
    std::uint64_t malformed = 0;
    std::uint64_t lost = 0;  ///< overwritten before they were read
  };

  IsolationDetector(os::EventLoop& loop, os::Kernel& kernel, IsolationCallback on_event, EndCallback on_end)
      : loop_(loop), kernel_(kernel), on_event_(std::move(on_event)), on_end_(std::move(on_end)) {}

  /// Starts from now on; what has happened before is skipped. Where events were lost, whoever is condemned is
  /// told of, some of them once more. NotFound: the driver has no fault isolation; PermissionDenied: only
  /// root may read it.
  Status start() override;
  /// false: it was never started, its file could not be read any more, or isolation is off.
  bool tells_outcomes() const override;
  const Counters& counters() const { return counters_; }

 private:
  Result<std::vector<IsolationEvent>> read_events();
  Result<std::string> read_all(const os::Fd& file);
  void read_new();
  void tell_condemned();
  void tell(const IsolationEvent& event);

  os::EventLoop& loop_;
  os::Kernel& kernel_;
  IsolationCallback on_event_;
  EndCallback on_end_;
  Counters counters_;
  std::uint64_t last_ = 0;  ///< the highest sequence that was read
  os::Fd file_;
  os::Watch readable_;
};

}  // namespace firebreak::watch
