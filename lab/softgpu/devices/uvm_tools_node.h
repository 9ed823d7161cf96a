// SPDX-License-Identifier: Apache-2.0
/// One open /dev/nvidia-uvm-tools of the software machine: page faults of one process, written into the
/// program's queue as NVIDIA's driver does.
#pragma once

#include <atomic>
#include <cstdint>
#include <memory>
#include <mutex>
#include <optional>
#include <thread>

#include "ground/base/result.h"
#include "ground/os/fd.h"
#include "shared/abi/uvm_tools.h"
#include "softgpu/devices/node_socket.h"
#include "softgpu/devices/pinned_buffer.h"
#include "softgpu/machine/due_queue.h"
#include "softgpu/machine/ring_follower.h"
#include "softgpu/machine/shared_gpu.h"
#include "softgpu/machine/uvm_ring.h"

namespace firebreak::softgpu {

/// Thread safe. Its thread starts with the event tracker and ends with the object or when the program closes
/// its descriptor.
class UvmToolsNode {
 public:
  struct Opened;
  static Result<Opened> open(int flags);
  explicit UvmToolsNode(NodeSocket socket) : socket_(std::move(socket)) {}
  UvmToolsNode(const UvmToolsNode&) = delete;
  UvmToolsNode& operator=(const UvmToolsNode&) = delete;
  ~UvmToolsNode();

  /// The argument's rm_status tells what goes wrong, as by the driver; Unsupported means that there is no
  /// such request.
  Status ioctl(unsigned long request, void* argument);
  bool is_behind(int number) const { return socket_.is_peer(number); }
  /// All that is due by now is in the queue after this. The driver writes an event before it lets the process
  /// go on, so that it is there when the process has ended; our thread alone would come too late on a busy
  /// machine.
  void catch_up();
  /// Nobody listens any more; also where nobody ever did.
  bool ended() const;

 private:
  std::uint32_t init_tracker(const abi::UvmToolsInitEventTracker& request);
  void run();
  void end();
  void collect();
  /// This tells whether anything was due.
  bool write_due();
  /// False when the program is gone.
  bool wake_program();
  void write_event(const abi::UvmEvent& event);
  void write_fault(const UvmPageFault& fault);

  NodeSocket socket_;
  mutable std::mutex mutex_;  ///< guards the tracker: its setting up, what it writes, its end
  std::optional<UvmDescriptor> target_;
  PinnedBuffer queue_;
  PinnedBuffer control_;
  std::uint32_t queue_entries_ = 0;
  std::atomic<std::uint32_t> threshold_{1};
  std::atomic<std::uint64_t> enabled_events_{0};
  RingFollower follower_{0};
  DueQueue<UvmPageFault> waiting_;
  std::atomic<bool> stopping_{false};
  bool ended_ = false;
  std::thread thread_;
};

struct UvmToolsNode::Opened {
  os::Fd descriptor;
  std::shared_ptr<UvmToolsNode> node;
};

}  // namespace firebreak::softgpu
