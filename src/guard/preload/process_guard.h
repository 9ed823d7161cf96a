// SPDX-License-Identifier: Apache-2.0
/// The one guard of this process, made when somebody first asks the CUDA driver for anything.
#pragma once

#include <memory>
#include <string>

#include "guard/guard.h"
#include "guard/launch_words.h"
#include "os/real_kernel.h"

namespace firebreak::guard {

/// This machine, and under the software GPU its stand-ins for the UVM descriptor and the driver's version, as
/// the environment says.
class TenantKernel final : public os::RealKernel {
 public:
  std::string uvm_link_target() const override;
  Result<std::string> gpu_driver() override;
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
  LaunchWords* words() { return words_.get(); }

 private:
  ProcessGuard() = default;
  static void begin_anew();
  static std::unique_ptr<ProcessGuard> create(const cuda::Driver& driver);

  TenantKernel kernel_;
  std::unique_ptr<Guard> guard_;
  std::unique_ptr<LaunchWords> words_;
};

/// Null where nothing is counted: without a driver.
LaunchWords* words_of_process();
/// The same, and null where nobody has asked for the driver in this process yet.
LaunchWords* existing_words();

}  // namespace firebreak::guard
