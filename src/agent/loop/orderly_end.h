// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <functional>
#include <memory>
#include <string>

#include "agent/loop/surroundings.h"
#include "ground/base/clock.h"
#include "ground/os/event_loop.h"
#include "ground/os/kernel.h"

namespace firebreak::agent {

struct EndPlan {
  pid_t pid = 0;
  std::string domain;
  /// A fault of its domain is under way for so long, and MPS was seen never to answer then.
  Nanoseconds fault_lasts{};
  /// Time for MPS to take a client off, which took 1.1 s behind a full GPU.
  Milliseconds terminate_timeout{1500};
  /// Time between SIGTERM and SIGKILL.
  Milliseconds grace{2000};
};

/// One process on its way out. A client that ends with a kernel under way takes its domain along, so first
/// MPS takes it off the GPU; then SIGTERM, then SIGKILL. Lives on the loop's thread; ends with the object,
/// which the owner of the process keeps until it is gone.
class OrderlyEnd : public std::enable_shared_from_this<OrderlyEnd> {
 public:
  /// `on_harmless`: it has nothing on the GPU from now on, so that its end is no fault; called at most once,
  /// before SIGTERM. The references outlive the object. NotFound: it is gone already.
  static Result<std::shared_ptr<OrderlyEnd>> begin(os::EventLoop& loop, os::Kernel& kernel, Domains& domains,
                                                   std::shared_ptr<const os::Fd> process, EndPlan plan,
                                                   std::function<void()> on_harmless);

  /// True when it had nothing on the GPU when it was told to end.
  bool harmless() const { return harmless_; }
  /// Returns what was done so far: "MPS took it off the GPU, SIGTERM".
  const std::string& steps() const { return steps_; }

 private:
  OrderlyEnd(os::EventLoop& loop, os::Kernel& kernel, Domains& domains, std::shared_ptr<const os::Fd> process,
             EndPlan plan, std::function<void()> on_harmless);
  void start();
  void terminate();
  void terminated(const Status& status);
  void ask_it_to_end();
  void send(int signal, const char* name);
  void note(const std::string& step);
  os::Watch after(Nanoseconds delay, std::function<void()> callback);

  os::EventLoop& loop_;
  os::Kernel& kernel_;
  Domains& domains_;
  std::shared_ptr<const os::Fd> process_;
  EndPlan plan_;
  std::function<void()> on_harmless_;
  bool waits_for_mps_ = false;
  bool harmless_ = false;
  std::string steps_;
  os::Watch next_;
};

}  // namespace firebreak::agent
