// SPDX-License-Identifier: Apache-2.0
/// What nvmlEventSet_t stands for.
#pragma once

#include <cstdint>
#include <memory>
#include <mutex>
#include <optional>

#include "ground/base/clock.h"
#include "softgpu/machine/due_queue.h"
#include "softgpu/machine/ring_follower.h"
#include "softgpu/machine/shared_gpu.h"

namespace firebreak::softgpu {

/// Thread safe. Every set sees every event that was posted since it listens.
class EventSet {
 public:
  explicit EventSet(std::shared_ptr<SharedGpu> gpu) : gpu_(std::move(gpu)) {}

  /// Events of these types (bits of one mask) are told from now on, those of earlier calls too.
  void listen(std::uint64_t types);
  /// The next event whose time has come; blocks for at most `timeout`.
  std::optional<NvmlEvent> wait(Nanoseconds timeout);

 private:
  /// An event that is due, or when to look again.
  std::optional<NvmlEvent> take(std::int64_t now_ns, std::int64_t& look_again_ns);

  std::shared_ptr<SharedGpu> gpu_;
  std::mutex mutex_;                      ///< guards what follows
  std::uint64_t types_ = 0;               ///< bits
  std::optional<RingFollower> follower_;  ///< since the first listen()
  DueQueue<NvmlEvent> waiting_;
};

}  // namespace firebreak::softgpu
