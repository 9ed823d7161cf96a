// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <optional>
#include <string_view>
#include <vector>

#include "agent/faults/watch/detector.h"
#include "agent/faults/watch/reading_plan.h"
#include "ground/base/clock.h"
#include "ground/os/event_loop.h"
#include "ground/os/kernel.h"

namespace firebreak::watch {

struct XidDetectorOptions {
  /// Its `bell` is found out, and so ignored.
  ReadingRules reading;
  /// A log that cannot be read is opened again after this, twice as long each time, up to the longest.
  Nanoseconds first_retry = std::chrono::milliseconds(10);
  Nanoseconds longest_retry = std::chrono::seconds(10);
  /// Records that are lost are told this often at most: a flood loses many.
  Nanoseconds between_gaps = std::chrono::milliseconds(250);
};

/// Turns the Xid messages of the kernel log into faults. No error of a read is its end: one that comes alone
/// costs a record; after two in a row the log is opened again. Whatever was missed is told as a gap.
class XidDetector final : public Detector {
 public:
  struct Counters {
    std::uint64_t records = 0;    ///< read since start()
    std::uint64_t faults = 0;     ///< number of Xid messages among those
    std::uint64_t malformed = 0;  ///< records without the log's own prefix
    std::uint64_t overruns = 0;   ///< times that records were overwritten before they were read
    std::uint64_t failures = 0;   ///< reads that failed otherwise
    std::uint64_t reopened = 0;
  };

  XidDetector(os::EventLoop& loop, os::Kernel& kernel, const Clock& clock, XidDetectorOptions options,
              FaultCallback on_fault, GapCallback on_gap);

  /// Starts from now on; what the log already holds is skipped. PermissionDenied says in one line what right
  /// is missing.
  Status start() override;
  /// Why lines may come as late as the kernel's timer tick, where it is so; after start().
  const std::optional<Error>& late_because() const { return late_because_; }
  /// Why the log is not read at present, where it is so; it is tried again.
  const std::optional<Error>& off_because() const { return off_because_; }
  /// Something else says that a fault is under way: its lines are looked for from now on.
  void suspect() override;
  std::string remark() const override;
  const Counters& counters() const { return counters_; }

 private:
  Status open_log();
  Status skip_backlog();
  void listen_to_bell();
  void ring(const os::Fd& fd);
  void keep_pace();
  void read_log();
  void handle(std::string_view record);
  void miss(const std::string& what);
  void tell_gap(const std::string& what);
  void lose_log(const Error& error);
  void retry_later();
  void retry();

  os::EventLoop& loop_;
  os::Kernel& kernel_;
  const Clock& clock_;
  XidDetectorOptions options_;
  FaultCallback on_fault_;
  GapCallback on_gap_;
  Counters counters_;
  ReadingPlan plan_;
  std::optional<Error> late_because_;
  std::optional<os::KernelLogBell> bell_;
  std::vector<os::Watch> rings_;
  os::Fd log_;
  os::Watch readable_;
  std::optional<Nanoseconds> period_;
  os::Watch sweep_;
  bool failed_before_ = false;  ///< the read before this one
  std::optional<Monotonic> last_gap_;
  std::optional<Error> off_because_;
  Nanoseconds next_retry_{};
  os::Watch retry_;
};

}  // namespace firebreak::watch
