// SPDX-License-Identifier: Apache-2.0
/// What nvmlEventSet_t stands for.
#pragma once

#include <cstdint>
#include <memory>
#include <mutex>
#include <optional>
#include <vector>

#include "ground/base/clock.h"
#include "softgpu/machine/due_queue.h"
#include "softgpu/machine/ring_follower.h"
#include "softgpu/machine/shared_gpu.h"

namespace firebreak::softgpu {

/// Thread safe. Every set sees every event of a GPU that was posted since it listens to that.
class EventSet {
 public:
  struct Event {
    NvmlEvent of_gpu;
    std::size_t gpu = 0;  ///< from 0
  };

  /// At least one.
  explicit EventSet(const std::vector<std::shared_ptr<SharedGpu>>& gpus);

  /// Events of these types (bits of one mask) are told of that GPU from now on, those of earlier calls too.
  void listen(std::size_t gpu, std::uint64_t types);
  /// The next event whose time has come; blocks for at most `timeout`.
  std::optional<Event> wait(Nanoseconds timeout);

 private:
  struct Source {
    std::shared_ptr<SharedGpu> gpu;
    std::uint64_t types = 0;               ///< bits
    std::optional<RingFollower> follower;  ///< since the first listen()
  };

  /// An event that is due, or when to look again.
  std::optional<Event> take(std::int64_t now_ns, std::int64_t& look_again_ns);
  /// Of the first GPU, which is told of all (SharedGpu::post_nvml()).
  const WakeWord& wake() const { return first_->nvml_wake(); }

  std::shared_ptr<SharedGpu> first_;
  std::mutex mutex_;  ///< guards what follows
  std::vector<Source> sources_;
  DueQueue<Event> waiting_;
};

}  // namespace firebreak::softgpu
