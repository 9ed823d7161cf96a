// SPDX-License-Identifier: Apache-2.0
/// One open /dev/kmsg of the software machine: a record for each read(), readable when a new one is due.
#pragma once

#include <atomic>
#include <cstdint>
#include <memory>
#include <string>
#include <thread>

#include "ground/base/result.h"
#include "ground/os/fd.h"
#include "softgpu/devices/node_socket.h"
#include "softgpu/machine/due_queue.h"
#include "softgpu/machine/ring_follower.h"
#include "softgpu/machine/shared_gpu.h"

namespace firebreak::softgpu {

/// Has a thread of its own, which ends with the object or when the program closes its descriptor.
class KmsgFeed {
 public:
  struct Opened;
  /// The reader gets what the log holds already at once, as from the real one.
  static Result<Opened> open(std::shared_ptr<SharedGpu> gpu, int flags);
  KmsgFeed(const KmsgFeed&) = delete;
  KmsgFeed& operator=(const KmsgFeed&) = delete;
  ~KmsgFeed();
  bool ended() const { return ended_.load(); }

 private:
  KmsgFeed(std::shared_ptr<SharedGpu> gpu, NodeSocket socket);
  void run();
  void collect();
  /// False when the program is gone.
  bool deliver();

  std::shared_ptr<SharedGpu> gpu_;
  NodeSocket socket_;
  RingFollower follower_;
  std::uint64_t next_record_ = 0;
  DueQueue<std::string> waiting_;
  std::atomic<bool> stopping_{false};
  std::atomic<bool> ended_{false};
  std::thread thread_;
};

struct KmsgFeed::Opened {
  os::Fd descriptor;
  std::unique_ptr<KmsgFeed> feed;
};

}  // namespace firebreak::softgpu
