// SPDX-License-Identifier: Apache-2.0
/// One driver of several in this process: a private copy of the library, a client of an MPS server of its
/// own.
#pragma once

#include <atomic>
#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "ground/base/result.h"
#include "ground/os/self.h"
#include "program/cuda/backend.h"
#include "program/instance/copy.h"
#include "program/virtual/objects.h"

namespace firebreak::virtual_driver {

/// What an instance is to be.
struct InstanceSettings {
  std::string library;         ///< the program's own driver, by its path
  std::string pipe_directory;  ///< of the domain that it joins
  Slot slot = no_slot;
  /// Of its core dump, where the process is in that mode; empty: the process's; no_dump: it is not in it.
  std::string dump_path = {};
};

inline constexpr const char* no_dump = "/dev/null";

/// What a driver is to find in its environment that writes no core dumps.
os::EnvironmentScope::Variables environment_without_dumps();
/// What a driver is to find in its environment while it comes up in that domain. `dump_path` empty: its core
/// dumps go to where the process's go; no_dump: it writes none.
os::EnvironmentScope::Variables environment_in(const std::string& pipe_directory,
                                               const std::string& dump_path);

/// Constant while it is there; any thread may use it. Owns all that its driver takes, and is thrown away
/// whole. The object stays for another one, since somebody may be looking at it still.
class Instance {
 public:
  /// One that has no driver yet.
  static std::unique_ptr<Instance> blank() { return std::unique_ptr<Instance>(new Instance({})); }

  /// Of one that has no driver: copies the library, loads the copy, makes its primary context on device 0 and
  /// reserves the window. Takes 0.2 to 0.6 s on an H100 (docs/how/spare.md). One at a time in a process.
  /// Where it fails it was thrown away. Unavailable: the domain takes nobody. Unsupported: the window is not
  /// to be had, or a copy could not be thrown away.
  Status bring_up(const InstanceSettings& settings);

  /// Of a driver that is there, whether or not it has started: the program's own is the anchor.
  static std::unique_ptr<Instance> of(const cuda::Backend& driver, Slot slot = anchor);

  /// The same once more, after reset(), in the same domain. It takes its library as it is: 143 to 185 ms on
  /// an H200.
  Status begin_again();

  /// Everything of it goes: see instance::DriverCopy. Nobody is inside one of its calls, but for threads of
  /// start_thread(). The anchor stays.
  instance::Thrown throw_away();
  /// A thread that is inside its calls, and ends with it at the latest.
  Status start_thread(std::function<void()> run) const { return copy_->start_thread(std::move(run)); }
  /// Where it writes core dumps.
  void prepare_dump() const {
    if (copy_ != nullptr && !settings_.dump_path.empty() && settings_.dump_path != no_dump)
      copy_->prepare_dump();
  }
  bool has_copy() const { return copy_ != nullptr; }
  /// What its driver has at this moment.
  instance::TakenCounts counts() const { return copy_->counts(); }
  /// What its driver wants done at the process's end.
  void run_exits() const {
    if (copy_ != nullptr) copy_->run_exits();
  }

  Slot slot() const { return settings_.slot; }
  /// Tells the times apart that an instance has begun, of all instances. 0: the anchor's.
  std::uint32_t life() const { return life_.load(std::memory_order_acquire); }
  const std::string& pipe_directory() const { return settings_.pipe_directory; }
  const cuda::Backend& driver() const { return driver_; }
  CUcontext primary() const { return primary_; }
  /// UVM descriptors that its driver has. Empty: it did not come up here.
  std::vector<int> uvm_descriptors() const;

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
  Status make_context();
  bool reserve_window();

  InstanceSettings settings_;
  std::unique_ptr<instance::DriverCopy> copy_;  ///< null: the anchor, or it is thrown away
  cuda::Backend driver_{};
  CUcontext primary_ = nullptr;
  CUdeviceptr scratch_ = 0;  ///< of is_alive()
  bool has_window_ = false;
  std::atomic<std::uint32_t> life_{0};
};

}  // namespace firebreak::virtual_driver
