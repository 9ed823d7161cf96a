// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <map>
#include <string_view>

#include "base/clock.h"
#include "os/event_loop.h"
#include "os/kernel.h"
#include "watch/target.h"

namespace firebreak::watch {

struct XidDetectorOptions {
  /// PCI address as the driver prints it ("0000:00:05") to the GPU's index; any other address is GPU 0.
  std::map<std::string, std::uint32_t> gpu_of_pci;
  /// The log is also read this often, because its poll() wakes only with the kernel's timer tick: up to 4 ms
  /// later than the record can be read (measured). Zero: poll() alone.
  Nanoseconds sweep_period = std::chrono::microseconds(250);
};

/// Turns the Xid messages of the kernel log into faults.
class XidDetector {
 public:
  struct Counters {
    std::uint64_t records = 0;    ///< read since start()
    std::uint64_t faults = 0;     ///< of those, Xid messages
    std::uint64_t malformed = 0;  ///< records without the log's own prefix
    std::uint64_t overruns = 0;   ///< times that records were overwritten before they were read
  };

  XidDetector(os::EventLoop& loop, os::Kernel& kernel, const Clock& clock, XidDetectorOptions options,
              FaultCallback on_fault, EndCallback on_end);

  /// From now on; what the log already holds is skipped. PermissionDenied says in one line what right is
  /// missing.
  Status start();
  const Counters& counters() const { return counters_; }

 private:
  Status skip_backlog();
  void read_log();
  void handle(std::string_view record);
  void end(const Error& error);

  os::EventLoop& loop_;
  os::Kernel& kernel_;
  const Clock& clock_;
  XidDetectorOptions options_;
  FaultCallback on_fault_;
  EndCallback on_end_;
  Counters counters_;
  os::Fd log_;
  os::Watch readable_;
  os::Watch sweep_;
};

}  // namespace firebreak::watch
