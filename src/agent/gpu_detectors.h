// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <map>
#include <memory>
#include <string>

#include "agent/surroundings.h"
#include "base/clock.h"
#include "os/event_loop.h"
#include "os/kernel.h"
#include "watch/exit_detector.h"
#include "watch/uvm_detector.h"
#include "watch/xid_detector.h"

namespace firebreak::agent {

/// The detectors of src/watch: the kernel log for the GPU, UVM events and the end for each process.
class GpuDetectors final : public Detectors {
 public:
  GpuDetectors(os::EventLoop& loop, os::Kernel& kernel, const Clock& clock)
      : loop_(loop), kernel_(kernel), clock_(clock) {}

  std::vector<std::string> start(OnFault on_fault, OnExit on_exit) override;
  Status follow(pid_t pid) override;

 private:
  struct Followed {
    std::unique_ptr<watch::ExitDetector> exit;
    std::unique_ptr<watch::UvmDetector> uvm;
  };
  void ended(pid_t pid);

  os::EventLoop& loop_;
  os::Kernel& kernel_;
  const Clock& clock_;
  OnFault on_fault_;
  OnExit on_exit_;
  std::unique_ptr<watch::XidDetector> xid_;
  std::map<pid_t, Followed> followed_;
  bool uvm_works_ = true;
};

}  // namespace firebreak::agent
