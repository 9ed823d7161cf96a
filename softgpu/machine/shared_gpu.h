// SPDX-License-Identifier: Apache-2.0
/// What all processes of one software GPU share: the kernel log, who holds how much device memory, and until
/// when the whole GPU stands still. One small file under FIREBREAK_SOFTGPU_DIR, mapped by everybody.
#pragma once

#include <array>
#include <atomic>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>

#include "base/result.h"
#include "os/memory.h"
#include "softgpu/machine/kmsg_ring.h"
#include "softgpu/machine/wake_word.h"

namespace firebreak::softgpu {

/// The file's layout. All zero but for the version is the valid start, so creating it takes no lock.
struct SharedGpuPage {
  struct ProcessSlot {
    std::atomic<std::uint64_t> identity;  ///< pid and start time; 0: free
    std::atomic<std::uint64_t> used_bytes;
  };
  std::atomic<std::uint32_t> version;
  WakeWord wake;  ///< bumped whenever anything that stops kernels has changed, in any domain
  std::atomic<std::int64_t> stalled_until_ns;
  std::atomic<std::uint64_t> next_channel;
  std::array<ProcessSlot, 256> processes;
  KmsgRing kmsg;
  WakeWord kmsg_wake;
};

/// CLOCK_MONOTONIC now, in nanoseconds.
std::int64_t now_ns();

/// Thread safe; robust against processes that die at any point.
class SharedGpu {
 public:
  /// The folder that the environment names.
  static std::string directory_from_environment();
  /// Creates the folder (0700) and the file where they are missing. PermissionDenied when the folder belongs
  /// to somebody else.
  static Result<std::shared_ptr<SharedGpu>> open(const std::string& directory = directory_from_environment());
  ~SharedGpu();

  /// Posts a kernel log line that appears at `due_ns`.
  void post_kmsg(std::int64_t due_ns, const std::string& text);
  const KmsgRing& kmsg() const { return page_->kmsg; }
  void wake_kmsg_readers() { page_->kmsg_wake.wake_all(); }
  const WakeWord& kmsg_wake() const { return page_->kmsg_wake; }

  /// Every context of the GPU stands still until then.
  void stall_until(std::int64_t until_ns);
  std::int64_t stalled_until_ns() const { return page_->stalled_until_ns.load(std::memory_order_acquire); }

  /// Tells every process that kernels may have to stop.
  void wake_everybody() { page_->wake.wake_all(); }
  const WakeWord& wake() const { return page_->wake; }

  /// Device memory, accounted to this process until it is given back or the process is gone.
  bool take_memory(std::uint64_t size_bytes);
  void give_memory(std::uint64_t size_bytes);
  std::uint64_t used_bytes() const;
  std::uint64_t total_bytes() const { return total_bytes_; }

 private:
  SharedGpu(os::Mapping mapping, std::uint64_t total_bytes);
  void forget_dead_processes();
  SharedGpuPage::ProcessSlot* own_slot();

  os::Mapping mapping_;
  SharedGpuPage* page_;
  std::uint64_t total_bytes_;
  std::uint64_t identity_;
  std::atomic<SharedGpuPage::ProcessSlot*> own_slot_{nullptr};
};

/// FIREBREAK_SOFTGPU_SPEED; 1 where unset or not a positive number.
double speed_from_environment();

}  // namespace firebreak::softgpu
