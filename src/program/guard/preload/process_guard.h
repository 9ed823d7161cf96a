// SPDX-License-Identifier: Apache-2.0
/// The one guard of this process, made when somebody first asks the CUDA driver for anything.
#pragma once

#include <memory>
#include <optional>
#include <string>

#include "ground/os/real_kernel.h"
#include "program/cuda/driver.h"
#include "program/guard/completion_markers.h"
#include "program/guard/guard.h"
#include "shared/abi/stand_in_driver.h"

namespace firebreak::guard {

/// The machine as a tenant sees it; where its driver stands in for NVIDIA's, with what that says of itself.
class TenantKernel final : public os::RealKernel {
 public:
  explicit TenantKernel(const cuda::Driver& driver);
  std::string uvm_link_target() const override;
  Result<std::string> gpu_driver() override;

 private:
  std::optional<abi::StandInDriver> stand_in_;
};

/// Never destroyed: other threads may use the driver until the process's very end.
class ProcessGuard {
 public:
  /// Null where there is no driver that we know how to guard: then nothing is replaced. `driver_function` as
  /// in ProcessDriver::library().
  /// A child of fork() has one of its own, with its own guard page; it comes up if the driver gives the child
  /// a context, which it does where the parent had not started CUDA.
  static ProcessGuard* get(const void* driver_function = nullptr);
  /// The same, and null where nobody has asked yet.
  static ProcessGuard* existing();

  Guard& guard() { return *guard_; }
  /// Null: launches are not counted.
  CompletionMarkers* markers() { return markers_.get(); }

 private:
  explicit ProcessGuard(const cuda::Driver& driver) : kernel_(driver) {}
  static void begin_anew();
  static std::unique_ptr<ProcessGuard> create(const cuda::Driver& driver);

  TenantKernel kernel_;
  std::unique_ptr<Guard> guard_;
  std::unique_ptr<CompletionMarkers> markers_;
};

/// Null where nothing is counted: without a driver.
CompletionMarkers* markers_of_process();
/// The same, and null where nobody has asked for the driver in this process yet.
CompletionMarkers* existing_markers();

}  // namespace firebreak::guard
