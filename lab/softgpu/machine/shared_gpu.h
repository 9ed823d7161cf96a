// SPDX-License-Identifier: Apache-2.0
/// The state that all processes of one software GPU share: the kernel log, who holds how much device memory,
/// and until when the whole GPU stands still. One small file under FIREBREAK_SOFTGPU_DIR, mapped by
/// everybody. Where the machine has several GPUs each has one, and the kernel log is that of the first.
#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "ground/base/result.h"
#include "ground/os/fd.h"
#include "ground/os/memory.h"
#include "shared/abi/cuda_result.h"
#include "softgpu/machine/gpu_processes.h"
#include "softgpu/machine/kmsg_ring.h"
#include "softgpu/machine/record_ring.h"
#include "softgpu/machine/wake_word.h"

namespace firebreak::softgpu {

/// An event that NVML tells, at its time.
struct NvmlEvent {
  std::int64_t due_ns = 0;
  std::uint64_t type = 0;  ///< one of NVML's event types
  std::uint64_t data = 0;  ///< the Xid, where the type is that
};

/// A fault of the device itself that reaches every process.
struct DeviceFault {
  int xid = 0;
  CUresult error = CUDA_SUCCESS;
  std::int64_t error_due_ns = 0;  ///< API calls answer `error` from here on
};

/// The file's layout. All zero but for the version is the valid start, so creating it takes no lock.
struct SharedGpuPage {
  std::atomic<std::uint32_t> version;
  WakeWord wake;  ///< bumped whenever anything that stops kernels has changed, in any domain
  std::atomic<std::int64_t> stalled_until_ns;
  std::atomic<std::int64_t> device_fault_due_ns;
  std::atomic<std::uint32_t> device_fault_xid;  ///< 0: the device is well
  std::atomic<std::int32_t> turn_of;            ///< the pid that stands for a domain; 0: nobody has had one
  std::atomic<std::uint64_t> switches;
  std::atomic<std::uint64_t> halted_kernels;
  std::atomic<std::uint64_t> thawed_kernels;
  WakeWord nvml_wake;
  RecordRing<NvmlEvent, 128> nvml;
  GpuProcessTable processes;
  KmsgRing kmsg;
  WakeWord kmsg_wake;
};

/// Kernels of others than the faulter on multiprocessors that an exception had halted, since ever.
struct HaltedKernels {
  std::uint64_t stood_still = 0;
  std::uint64_t thawed = 0;  ///< number of these that went on since the GPU took a turn for another domain
};

/// CLOCK_MONOTONIC now, in nanoseconds.
std::int64_t now_ns();

/// Thread safe; robust against processes that die at any point.
class SharedGpu {
 public:
  /// The folder that the environment names.
  static std::string directory_from_environment();
  /// Creates the folder (0700) and the file where they are missing. PermissionDenied when the folder belongs
  /// to somebody else; a folder of root's with mode 0711 is for everybody.
  static Result<std::shared_ptr<SharedGpu>> open(const std::string& directory = directory_from_environment(),
                                                 std::uint32_t number = 0);
  /// The one on which this process computes.
  static Result<std::shared_ptr<SharedGpu>> open_own();

  /// Returns the number, from 0.
  std::uint32_t number() const { return number_; }

  /// Registers this process as one that uses the GPU: before it makes a context or serves those who do. The
  /// first one finds the GPU reset: a fault of the device is over once all processes that used it are gone.
  Status enter();

  /// Posts a kernel log line that appears at `due_ns`, or now where that has passed.
  void post_kmsg(std::int64_t due_ns, const std::string& text);
  const KmsgRing& kmsg() const { return log_page().kmsg; }
  void wake_kmsg_readers() { log_page().kmsg_wake.wake_all(); }
  const WakeWord& kmsg_wake() const { return log_page().kmsg_wake; }

  /// Keeps every context of the GPU still until then.
  void stall_until(std::int64_t until_ns);
  std::int64_t stalled_until_ns() const { return page_->stalled_until_ns.load(std::memory_order_acquire); }

  /// Makes every process that uses the GPU answer errors from its time on. The first such fault stays.
  void raise_device_fault(int xid, std::int64_t error_due_ns);
  std::optional<DeviceFault> device_fault() const;

  /// A kernel of that domain (Domain::owner()) has the GPU for as long as a turn lasts: the GPU has switched
  /// contexts, if another domain had it before.
  void take_turn(pid_t owner) {
    if (page_->turn_of.exchange(owner) != owner) page_->switches.fetch_add(1);
  }
  std::uint64_t switches() const { return page_->switches.load(); }

  void count_halted_kernel() { page_->halted_kernels.fetch_add(1); }
  void count_thawed_kernel() { page_->thawed_kernels.fetch_add(1); }
  HaltedKernels halted_kernels() const {
    return {page_->halted_kernels.load(), page_->thawed_kernels.load()};
  }

  void post_nvml(const NvmlEvent& event);
  const RecordRing<NvmlEvent, 128>& nvml() const { return page_->nvml; }
  const WakeWord& nvml_wake() const { return page_->nvml_wake; }

  /// Tells every process that kernels may have to stop.
  void wake_everybody() { page_->wake.wake_all(); }
  const WakeWord& wake() const { return page_->wake; }

  /// Device memory, accounted to this process until it is given back or the process is gone; false
  /// when there is not as much left, or before enter().
  bool take_memory(std::uint64_t size_bytes) { return processes_.take_memory(size_bytes, total_bytes_); }
  void give_memory(std::uint64_t size_bytes) { processes_.give_memory(size_bytes); }
  std::uint64_t used_bytes() const { return processes_.used_bytes(); }
  /// Shows where NVML lists processes, and is refused to nobody.
  void count_context_memory(std::int64_t change_bytes) { processes_.count_context_memory(change_bytes); }
  /// Limits this process to that much, as MPS does it.
  void limit_own_memory(std::uint64_t bytes) { processes_.limit_own(bytes); }
  /// Returns what this process may still have.
  std::uint64_t free_bytes() const;
  std::uint64_t total_bytes() const { return total_bytes_; }

  /// Lists processes as NVML does.
  std::vector<GpuProcess> processes() const { return processes_.list(); }
  /// A dead one is listed from now on, until it is forgotten: its address space is kept.
  void keep_listed(pid_t pid) { processes_.keep(pid); }
  void forget(pid_t pid) { processes_.forget(pid); }

 private:
  SharedGpu(os::Fd fd, os::Mapping mapping, std::uint64_t total_bytes, std::uint32_t number);
  void reset();
  SharedGpuPage& log_page() const { return first_ ? *first_->page_ : *page_; }

  os::Fd fd_;
  os::Mapping mapping_;
  SharedGpuPage* page_;
  std::uint64_t total_bytes_;
  std::uint32_t number_;
  GpuProcesses processes_;
  std::shared_ptr<SharedGpu> first_;  ///< none: it is this one
};

/// FIREBREAK_SOFTGPU_SPEED; 1 where unset or not a positive number.
double speed_from_environment();

}  // namespace firebreak::softgpu
