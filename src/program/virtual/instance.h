// SPDX-License-Identifier: Apache-2.0
/// One driver of several in this process: a private copy of the library, a client of an MPS server of its
/// own.
#pragma once

#include <atomic>
#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "ground/base/result.h"
#include "ground/os/self.h"
#include "program/cuda/backend.h"
#include "program/virtual/objects.h"

namespace firebreak::virtual_driver {

/// How many copies of the driver a process can load. Each stays in it for good: 43 MiB of its own (of PyTorch
/// 147), and 103 MiB that all processes of a user share (results/h200/spare-faults-32.json).
inline constexpr std::uint32_t copies_max = 256;
/// Of a process in the core dump mode: its dumps were seen to work with up to 64 of them, where no other
/// process had left any (H200, results/h200/spare-alone.json).
inline constexpr std::uint32_t copies_with_dumps_max = 58;

/// The UVM descriptors of this process, by number.
using ListUvmDescriptors = std::vector<int> (*)();

/// What an instance is to be.
struct InstanceSettings {
  std::string library;         ///< the program's own driver, by its path
  std::string pipe_directory;  ///< of the domain that it joins
  Slot slot = no_slot;
  std::uint32_t copy = 0;  ///< which one of the library; from 1 on, and below copies_max
  ListUvmDescriptors uvm_descriptors = nullptr;
  std::string dump_path = {};  ///< of its core dump, where the process is in that mode; empty: the process's
};

/// That copy of the library, as dlopen() gave it; null: there is none. Any thread may ask.
void* instance_library(std::uint32_t copy);

/// What a driver is to find in its environment while it comes up in that domain. `dump_path` empty: its core
/// dumps go to where the process's go.
os::EnvironmentScope::Variables environment_in(const std::string& pipe_directory,
                                               const std::string& dump_path);

/// Constant while it is there; any thread may use it. Never ended: a driver's threads do not survive that.
/// One that was reset while its domain had not fallen can begin again, in the same domain with whatever
/// daemon serves there. One whose domain fell under it cannot: each call answers that error for good (H200,
/// results/h200/instance-again.json).
class Instance {
 public:
  /// Copies the library, loads the copy, makes its primary context on device 0 and reserves the window. Takes
  /// 0.2 to 0.6 s on an H100 (docs/how/spare.md). One at a time in a process. Sets CUDA_MPS_PIPE_DIRECTORY
  /// for as long as it takes: the environment has to have that variable already, so that nobody who reads
  /// another one meanwhile sees a list that moves. Unavailable: the domain takes nobody. Unsupported: the
  /// window is not to be had.
  static Result<std::unique_ptr<Instance>> bring_up(const InstanceSettings& settings);

  /// Of a driver that is there, whether or not it has started: the program's own is the anchor.
  static std::unique_ptr<Instance> of(const cuda::Backend& driver, Slot slot = anchor);

  /// The same once more, after reset(). It takes its library as it is: 143 to 185 ms on an H200.
  Status begin_again();

  Slot slot() const { return settings_.slot; }
  /// Tells the times apart that an instance has begun, of all instances. 0: the anchor's.
  std::uint32_t life() const { return life_.load(std::memory_order_acquire); }
  const std::string& pipe_directory() const { return settings_.pipe_directory; }
  const cuda::Backend& driver() const { return driver_; }
  CUcontext primary() const { return primary_; }
  /// UVM descriptors that its driver opened as it came up. Empty: it did not come up here, or nobody asks.
  const std::vector<int>& uvm_descriptors() const { return uvm_descriptors_; }

  /// Whether it still works: it is given a word to store, and has stored it. Takes some 20 us where it lives,
  /// and up to 300 ms where its domain has just died. Changes what is current on the calling thread in that
  /// instance.
  bool is_alive() const;

  /// Ends its context, so that its domain takes clients again. For one that nobody uses any more.
  CUresult reset() const;

 private:
  explicit Instance(InstanceSettings settings) : settings_(std::move(settings)) {}
  Status load();
  Status start();
  Status come_up_again();
  Status make_context();
  bool reserve_window();
  Status with_descriptors(Status (Instance::*come_up)());

  InstanceSettings settings_;
  cuda::Backend driver_{};
  CUcontext primary_ = nullptr;
  CUdeviceptr scratch_ = 0;  ///< of is_alive()
  bool has_window_ = false;
  std::vector<int> uvm_descriptors_;
  std::atomic<std::uint32_t> life_{0};
};

}  // namespace firebreak::virtual_driver
