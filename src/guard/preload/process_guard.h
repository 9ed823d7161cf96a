// SPDX-License-Identifier: Apache-2.0
/// The one guard of this process, made when somebody first asks the CUDA driver for anything.
#pragma once

#include <memory>
#include <string>

#include "cuda/driver.h"
#include "guard/guard.h"
#include "guard/launch_words.h"
#include "os/real_kernel.h"

namespace firebreak::guard {

/// While one lives on a thread, that thread's questions to the dynamic linker are answered with the driver's
/// own functions: the guard's own use of the driver is not guarded.
class Bypass {
 public:
  Bypass();
  Bypass(const Bypass&) = delete;
  Bypass& operator=(const Bypass&) = delete;
  ~Bypass();
  static bool active();

 private:
  bool before_;
};

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
  /// Null where there is no driver that we know how to guard: then nothing is replaced. The first call
  /// decides which library the driver is: `driver_function`'s, else the one that cuda::Driver finds.
  /// A child of fork() has one of its own, with its own guard page; it comes up if the driver gives the child
  /// a context, which it does where the parent had not started CUDA.
  static ProcessGuard* get(const void* driver_function = nullptr);
  /// The same, and null where nobody has asked yet.
  static ProcessGuard* existing();

  Guard& guard() { return *guard_; }
  /// Null: launches are not counted.
  LaunchWords* words() { return words_.get(); }
  const cuda::Driver& driver() const { return *driver_; }

  /// A function of the driver by its exported name, or null.
  template <class Function>
  Function real(const char* name) const {
    const Bypass bypass;
    return reinterpret_cast<Function>(driver_->symbol(name));
  }

 private:
  ProcessGuard() = default;
  static void begin_anew();
  static std::unique_ptr<ProcessGuard> create(const void* driver_function);

  std::unique_ptr<const cuda::Driver> driver_;
  TenantKernel kernel_;
  std::unique_ptr<Guard> guard_;
  std::unique_ptr<LaunchWords> words_;
};

}  // namespace firebreak::guard
