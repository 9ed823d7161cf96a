// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <atomic>
#include <functional>
#include <memory>
#include <thread>

#include "agent/faults/watch/detector.h"
#include "agent/faults/watch/nvml_library.h"
#include "ground/base/clock.h"
#include "ground/os/event_loop.h"

namespace firebreak::watch {

/// Turns NVML's Xid and ECC events of every GPU into faults. They come later than the kernel log and name no
/// process, but need no right. A thread of its own waits for them; its wake-ups cost 0.1 % of a core.
class NvmlDetector final : public Detector {
 public:
  /// How long destruction may take.
  static constexpr Milliseconds longest_wait{50};

  using OpenLibrary = std::function<Result<std::unique_ptr<NvmlLibrary>>()>;
  NvmlDetector(os::EventLoop& loop, const Clock& clock, OpenLibrary open, FaultCallback on_fault,
               EndCallback on_end);
  ~NvmlDetector() override;

  /// Unsupported: no GPU that tells of events. Otherwise as the library's opening fails.
  Status start() override;

 private:
  /// State that posted callbacks may still find when the detector is gone.
  struct Listener {
    FaultCallback on_fault;
    EndCallback on_end;
  };

  Status listen_to(unsigned int index);
  void wait_for_events();
  void tell(const abi::nvmlEventData_t& data);

  os::EventLoop& loop_;
  const Clock& clock_;
  OpenLibrary open_;
  std::unique_ptr<NvmlLibrary> library_;  ///< library, from start() on
  std::shared_ptr<Listener> listener_;    ///< the loop's thread calls it; the waiting thread only hands it on
  abi::nvmlEventSet_t events_ = nullptr;
  std::atomic<bool> stopping_{false};  ///< orders nothing: the thread's end is joined
  std::thread thread_;
};

}  // namespace firebreak::watch
