// SPDX-License-Identifier: Apache-2.0
/// What the detectors' tests share: a loop that runs until something was seen, and a scripted UVM tools node.
#pragma once

#include <gtest/gtest.h>

#include <atomic>
#include <functional>
#include <vector>

#include "abi/uvm_tools.h"
#include "os/event_loop.h"
#include "os/fake_kernel.h"
#include "os/memory.h"
#include "watch/target.h"

namespace firebreak::watch {

/// A fake kernel, a clock, a loop, and everything that a detector called back with.
class DetectorTest : public testing::Test {
 protected:
  DetectorTest() : loop_(std::move(os::EventLoop::create().value())) { clock_.advance(Milliseconds(7)); }

  FaultCallback note_fault() {
    return [this](const fault::Fault& fault) { faults_.push_back(fault); };
  }
  EndCallback note_end() {
    return [this](const Error& error) { ends_.push_back(error); };
  }

  /// Serves the loop until `done`; false when that does not come true for a long time.
  bool run_until(const std::function<bool()>& done) {
    const Monotonic deadline = SystemClock().now() + std::chrono::seconds(30);
    while (!done() && SystemClock().now() < deadline) loop_->run_once(Milliseconds(50));
    return done();
  }
  /// Serves everything that is ready now.
  void settle() {
    while (loop_->run_once(Milliseconds(0))) {
    }
  }

  os::FakeKernel kernel_;
  FakeClock clock_;
  std::unique_ptr<os::EventLoop> loop_;
  std::vector<fault::Fault> faults_;
  std::vector<Error> ends_;
};

/// Answers for /dev/nvidia-uvm-tools as the driver does: a queue for a VA space, status 22 for anything else.
class FakeUvmTools {
 public:
  explicit FakeUvmTools(os::FakeKernel& kernel) : kernel_(kernel) {
    os::FakeDevice device;
    device.ioctl = [this](const os::Fd&, unsigned long request, void* argument) {
      return ioctl(request, argument);
    };
    kernel.set_device(abi::uvm_tools_path, std::move(device));
  }

  /// A descriptor that stands for a VA space, or for a UVM descriptor that is none.
  static os::Fd va_space() { return os::create_memory_file("va-space", 4096).value(); }
  static os::Fd no_va_space() { return os::create_memory_file("other", 0).value(); }

  /// Writes one event as the driver would and wakes the reader.
  void post(const abi::UvmEvent& event) {
    auto* control = reinterpret_cast<abi::UvmToolsControl*>(tracker_.control_buffer);
    auto* entries = reinterpret_cast<abi::UvmEvent*>(tracker_.queue_buffer);
    std::atomic_ref put(control->put_behind);
    const std::uint32_t at = put.load();
    entries[at] = event;
    std::atomic_ref(control->put_ahead).store((at + 1) % static_cast<std::uint32_t>(tracker_.queue_entries));
    put.store((at + 1) % static_cast<std::uint32_t>(tracker_.queue_entries));
    kernel_.wake(abi::uvm_tools_path);
  }
  /// Which place of the queue the reader stands at.
  std::uint32_t get_index() const {
    auto* control = reinterpret_cast<abi::UvmToolsControl*>(tracker_.control_buffer);
    return std::atomic_ref(control->get_ahead).load();
  }

  int refused = 0;                ///< descriptors that were no VA space
  int trackers = 0;               ///< queues that were made
  std::uint32_t threshold = 0;    ///< the last one set
  std::uint64_t enabled = 0;      ///< the last mask of events
  std::uint32_t init_status = 0;  ///< answered instead of success for a VA space

 private:
  Status ioctl(unsigned long request, void* argument) {
    if (request == abi::uvm_tools_init_event_tracker)
      init(*static_cast<abi::UvmToolsInitEventTracker*>(argument));
    if (request == abi::uvm_tools_set_notification_threshold) {
      threshold = static_cast<abi::UvmToolsSetNotificationThreshold*>(argument)->threshold;
    }
    if (request == abi::uvm_tools_event_queue_enable_events) {
      enabled = static_cast<abi::UvmToolsEnableEvents*>(argument)->event_types;
    }
    return {};
  }

  void init(abi::UvmToolsInitEventTracker& tracker) {
    const std::size_t size = os::file_size(static_cast<int>(tracker.uvm_fd)).value();
    tracker.rm_status = size == 0 ? abi::nv_err_illegal_action : init_status;
    if (size == 0) ++refused;
    if (tracker.rm_status != abi::nv_ok) return;
    ++trackers;
    tracker_ = tracker;
  }

  os::FakeKernel& kernel_;
  abi::UvmToolsInitEventTracker tracker_{};
};

}  // namespace firebreak::watch
