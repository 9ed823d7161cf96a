// SPDX-License-Identifier: Apache-2.0
/// CUDA's core dump mode of one process: which kernels a dump of it shows, and its writing.
#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <list>
#include <mutex>
#include <string>
#include <string_view>

#include "shared/abi/cuda_driver.h"
#include "softgpu/driver/core_dump_file.h"
#include "softgpu/interpreter/interpreter.h"
#include "softgpu/machine/domain.h"

namespace firebreak::softgpu::driver {

struct CoreDumpSettings {
  bool enabled = false;  ///< the environment has enabled it: no call changes anything of it
  bool shows_progress = false;
  bool dumps_after_traps = true;  ///< dumps after other processes' traps
  bool aborts = true;             ///< the process, once its dump is complete
  std::string file;               ///< name with its %h, %p and %t filled in
};

/// Returns what the environment says.
CoreDumpSettings core_dump_settings();

/// Thread safe.
class CoreDumpMode {
 public:
  explicit CoreDumpMode(CoreDumpSettings settings) : settings_(std::move(settings)) {}

  bool is_on() const { return settings_.enabled || is_on_by_calls_.load(); }
  bool dumps_after_traps() const { return settings_.dumps_after_traps; }
  bool aborts() const;
  /// The settings of the process, as cuCoredumpSetAttributeGlobal was seen to take them (H200,
  /// results/h200/core-dump-api.json): who is in the mode by its environment stays as it is.
  CUresult set(CUcoredumpSettings setting, const void* value, std::size_t size_bytes);
  CUresult get(CUcoredumpSettings setting, void* value, std::size_t* size_bytes) const;
  /// Writes one line or several of the mode, where they are wanted.
  void show(const std::string& lines) const;

  /// A kernel that is on the GPU while this lives; one that was halted stays there.
  class RunningKernel {
   public:
    RunningKernel(CoreDumpMode& mode, const Launch& launch);
    RunningKernel(const RunningKernel&) = delete;
    RunningKernel& operator=(const RunningKernel&) = delete;
    ~RunningKernel();
    void halt(const GpuFault& fault);

   private:
    CoreDumpMode& mode_;
    std::list<DumpedKernel>::iterator place_;
    bool stays_ = false;
  };

  /// Opens the file and writes it, which blocks as long as a FIFO has no reader, or one that does not read.
  /// `faulted_here`: the exception is that of a kernel of this process.
  void write(const SmException& exception, bool faulted_here);
  bool is_in_order() const { return is_in_order_.load(); }
  /// The error of a dump whose file cannot be opened; once.
  CUresult take_error() { return error_.exchange(CUDA_SUCCESS); }

 private:
  std::string file() const;
  std::vector<std::byte> content(const SmException& exception, bool faulted_here);
  std::string exception_lines();

  const CoreDumpSettings settings_;
  std::atomic<bool> is_on_by_calls_{false};
  std::atomic<CUresult> error_{CUDA_SUCCESS};
  std::atomic<bool> is_in_order_{true};  ///< true: no dump has failed
  mutable std::mutex mutex_;             ///< guards what follows
  std::string file_by_calls_;            ///< empty: no call has named one
  std::uint32_t flags_by_calls_ = 0;
  std::list<DumpedKernel> kernels_;
  std::string exception_lines_;  ///< lines of the first kernel of this process that was halted
};

}  // namespace firebreak::softgpu::driver
