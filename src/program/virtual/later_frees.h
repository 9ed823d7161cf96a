// SPDX-License-Identifier: Apache-2.0
/// Memory that the program has freed in the order of a stream (cuMemFreeAsync): it is free once the stream
/// has come there.
#pragma once

#include <mutex>
#include <vector>

#include "program/virtual/instance.h"
#include "program/virtual/memory.h"

namespace firebreak::virtual_driver {

/// Thread safe. A move waits for all streams, so everything of an earlier instance is free.
class LaterFrees {
 public:
  /// `stream`: as the instance calls it. The memory at `address` is free once all is done that is in it now.
  /// What the driver answers where it cannot mark that; CUDA_ERROR_INVALID_VALUE: it has been freed before.
  CUresult add(const Instance& active, CUstream stream, bool per_thread, CUdeviceptr address);
  /// The same, once somebody has waited for everything: in a capture no event can be recorded for that.
  /// False: it has been freed before.
  bool add_until_all_waited(const Instance& active, CUdeviceptr address);
  /// Whether there is something of that.
  bool wants_wait() const;
  /// Whether it waits to be free.
  bool holds(CUdeviceptr address) const;
  /// Gives `memory` what has become free. `all_waited`: everything that was queued has ended.
  void take_up(WindowMemory& memory, const Instance& active, bool all_waited = false);

 private:
  struct Later {
    CUdeviceptr address = 0;
    CUevent event = nullptr;  ///< of the instance in `slot`; null: all has to be waited for
    Slot slot = no_slot;
  };

  mutable std::mutex mutex_;
  std::vector<Later> all_;
};

}  // namespace firebreak::virtual_driver
