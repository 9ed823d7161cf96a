// SPDX-License-Identifier: Apache-2.0
/// One driver of several in this process: a private copy of the library, a client of an MPS server of its
/// own.
#pragma once

#include <memory>
#include <string>

#include "base/result.h"
#include "cuda/backend.h"
#include "virtual/objects.h"

namespace firebreak::virtual_driver {

/// What an instance is to be.
struct InstanceSettings {
  std::string library;         ///< the program's own driver, by its path
  std::string pipe_directory;  ///< of the domain that it joins
  Slot slot = no_slot;
  std::string dump_path = {};  ///< of its core dump, where the process is in that mode; empty: the process's
};

/// The library of the instance in that slot, as dlopen() gave it; null: there is none. Any thread may ask.
void* instance_library(Slot slot);

/// Constant once it is there; any thread may use it. Never ended: a driver's threads do not survive that.
class Instance {
 public:
  /// Copies the library, loads the copy, makes its primary context on device 0 and reserves the window. Takes
  /// 0.2 to 0.6 s on an H100 (docs/spare.md). One at a time in a process. Sets CUDA_MPS_PIPE_DIRECTORY for as
  /// long as it takes: the environment has to have that variable already, so that nobody who reads another
  /// one meanwhile sees a list that moves. Unavailable: the domain takes nobody. Unsupported: the window is
  /// not to be had.
  static Result<std::unique_ptr<Instance>> bring_up(const InstanceSettings& settings);

  /// Of a driver that is there, whether or not it has started: the program's own is the anchor.
  static std::unique_ptr<Instance> of(const cuda::Backend& driver, Slot slot = anchor);

  Slot slot() const { return settings_.slot; }
  const std::string& pipe_directory() const { return settings_.pipe_directory; }
  const cuda::Backend& driver() const { return driver_; }
  CUcontext primary() const { return primary_; }

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

  InstanceSettings settings_;
  cuda::Backend driver_{};
  CUcontext primary_ = nullptr;
  CUdeviceptr scratch_ = 0;  ///< of is_alive()
};

}  // namespace firebreak::virtual_driver
