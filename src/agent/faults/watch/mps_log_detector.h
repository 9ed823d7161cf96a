// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <string_view>

#include "agent/faults/watch/detector.h"
#include "agent/faults/watch/line_tail.h"
#include "ground/base/clock.h"
#include "ground/os/event_loop.h"
#include "ground/os/kernel.h"

namespace firebreak::watch {

/// Follows the server.log of one MPS domain and turns its lines about faults into faults. They are evidence,
/// and no proof of who it was.
class MpsLogDetector final : public Detector {
 public:
  struct Options {
    std::string directory;  ///< CUDA_MPS_LOG_DIRECTORY of the domain
    std::string domain;
    /// A client has come, or a server for one; the client's number, where the line has it.
    std::function<void(std::optional<pid_t>)> on_arrival = nullptr;
    /// A part of the log was passed over.
    GapCallback on_gap = nullptr;
  };

  MpsLogDetector(os::EventLoop& loop, os::Kernel& kernel, const Clock& clock, Options options,
                 FaultCallback on_fault);

  /// Starts from now on: what the log already holds is skipped. NotFound: no such directory.
  Status start() override;
  std::string remark() const override { return options_.directory; }

 private:
  void take_line(std::string_view text);
  void miss(std::uint64_t bytes);

  const Clock& clock_;
  Options options_;
  FaultCallback on_fault_;
  LineTail tail_;
};

}  // namespace firebreak::watch
