// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <optional>
#include <string>

#include "base/clock.h"
#include "os/event_loop.h"
#include "os/file_watch.h"
#include "os/kernel.h"
#include "watch/target.h"

namespace firebreak::watch {

/// Follows the server.log of one MPS domain and turns its lines about faults into faults. They are evidence,
/// and no proof of who it was.
class MpsLogDetector {
 public:
  struct Options {
    std::string directory;  ///< CUDA_MPS_LOG_DIRECTORY of the domain
    std::uint32_t gpu = 0;
    std::string domain;
  };

  MpsLogDetector(os::EventLoop& loop, os::Kernel& kernel, const Clock& clock, Options options,
                 FaultCallback on_fault);

  /// From now on: what the log already holds is skipped. NotFound: no such directory.
  Status start();

 private:
  void changed();
  void open_log(bool from_its_end);
  void read_log();
  void take_lines();

  os::EventLoop& loop_;
  os::Kernel& kernel_;
  const Clock& clock_;
  Options options_;
  FaultCallback on_fault_;
  std::optional<os::FileWatch> changes_;
  os::Watch readable_;
  os::Fd log_;
  std::uint64_t position_ = 0;  ///< bytes of `log_` that were read
  std::string unfinished_;      ///< a line whose end is not written yet
};

}  // namespace firebreak::watch
