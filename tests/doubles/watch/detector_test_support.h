// SPDX-License-Identifier: Apache-2.0
/// The detectors' tests share this: a loop that runs until something was seen, and a scripted UVM tools node.
#pragma once

#include <gtest/gtest.h>
#include <unistd.h>

#include <atomic>
#include <cstring>
#include <functional>
#include <vector>

#include "agent/faults/watch/detector.h"
#include "ground/os/event_loop.h"
#include "ground/os/memory.h"
#include "shared/abi/uvm_tools.h"
#include "tests/doubles/os/fake_kernel.h"

namespace firebreak::watch {

/// A fake kernel, a clock, a loop, and everything that a detector called back with.
class DetectorTest : public testing::Test {
 protected:
  DetectorTest() : loop_(std::move(os::EventLoop::create().value())) { clock_.advance(Milliseconds(7)); }

  FaultCallback note_fault() {
    return [this](const fault::Fault& fault) { faults_.push_back(fault); };
  }
  GapCallback note_gap() {
    return [this](const Gap& gap) { gaps_.push_back(gap); };
  }
  EndCallback note_end() {
    return [this](const Error& error) { ends_.push_back(error); };
  }
  /// This stands for a Watcher before a detector; it notes the faults and gaps that are called back.
  Workplace workplace() { return workplace(kernel_); }
  Workplace workplace(os::Kernel& kernel) {
    return {.loop = *loop_,
            .kernel = kernel,
            .clock = clock_,
            .options = {},
            .on_fault = note_fault(),
            .on_gap = note_gap(),
            .on_page_fault = {},
            .on_uvm_heard = {},
            .on_exit = [](const ProcessExit&, const std::optional<fault::Fault>&) {},
            .on_client = [](const std::string&, std::optional<pid_t>) {},
            .is_expected_to_end = [](pid_t) { return false; }};
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
  std::vector<Gap> gaps_;
  std::vector<Error> ends_;
};

/// Answers for /dev/nvidia-uvm-tools as the driver does: a queue for a VA space, status 22 for anything else,
/// status 31 for a queue that is not mapped to its end.
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

  /// Writes one event as the driver would and wakes the reader; drops it when the queue is full.
  template <std::size_t size>
  void post(const abi::UvmEntry<size>& event) {
    std::atomic_ref put(control()->put_behind);
    const std::uint32_t at = put.load();
    const std::uint32_t next = (at + 1) % static_cast<std::uint32_t>(tracker_.queue_entries);
    if (next == std::atomic_ref(control()->get_behind).load()) {
      std::atomic_ref(control()->dropped[static_cast<std::size_t>(event.type())]).fetch_add(1);
      return;
    }
    std::memcpy(reinterpret_cast<std::byte*>(tracker_.queue_buffer) + at * size, event.bytes.data(), size);
    std::atomic_ref(control()->put_ahead).store(next);
    put.store(next);
    kernel_.wake(abi::uvm_tools_path);
  }
  /// A write of the GPU's that UVM serviced.
  void post_page_fault(std::uint64_t address, Monotonic when) {
    abi::UvmGpuFault info{};
    info.event_type = abi::UvmEventType::GpuFault;
    info.access_type = abi::UvmAccessType::Write;
    info.address = address;
    info.timestamp_ns = static_cast<std::uint64_t>(to_ns(when));
    post(abi::UvmEvent::of(info));
  }
  /// An access that it could not serve.
  void post_fatal_fault(std::uint64_t address, Monotonic when) {
    abi::UvmFatalFault info{};
    info.event_type = abi::UvmEventType::FatalFault;
    info.fault_type = abi::UvmFaultType::InvalidPde;
    info.address = address;
    info.timestamp_ns = static_cast<std::uint64_t>(to_ns(when));
    post(abi::UvmEvent::of(info));
  }
  /// The reader stands at this place of the queue.
  std::uint32_t get_index() const { return std::atomic_ref(control()->get_ahead).load(); }
  /// A control structure of another kind has something else here.
  void corrupt_put_index() {
    std::atomic_ref(control()->put_behind).store(0x7000dead);
    kernel_.wake(abi::uvm_tools_path);
  }

  int refused = 0;                  ///< descriptors that were no VA space
  int trackers = 0;                 ///< queues that were made
  bool knows_v1 = true;             ///< whether the first layout's queue can be made
  bool knows_v2 = false;            ///< whether the second layout's can
  std::size_t entry_bytes_v1 = 64;  ///< This driver has it so.
  std::size_t entry_bytes_v2 = 72;
  std::uint32_t threshold = 0;    ///< the last one set
  std::uint64_t enabled = 0;      ///< the last mask of events
  std::uint32_t init_status = 0;  ///< answered instead of success for a VA space

 private:
  Status ioctl(unsigned long request, void* argument) {
    if ((request == abi::uvm_tools_init_event_tracker && knows_v1) ||
        (request == abi::uvm_tools_init_event_tracker_v2 && knows_v2)) {
      const bool v1 = request == abi::uvm_tools_init_event_tracker;
      init(*static_cast<abi::UvmToolsInitEventTracker*>(argument), v1 ? entry_bytes_v1 : entry_bytes_v2);
    } else if (request == abi::uvm_tools_set_notification_threshold) {
      threshold = static_cast<abi::UvmToolsSetNotificationThreshold*>(argument)->threshold;
    } else if (request == abi::uvm_tools_event_queue_enable_events) {
      enabled = static_cast<abi::UvmToolsEnableEvents*>(argument)->event_types;
    } else {
      return fail(ErrorCode::Internal, "ioctl: Invalid argument");
    }
    return {};
  }

  void init(abi::UvmToolsInitEventTracker& tracker, std::size_t entry_bytes) {
    const std::size_t size = os::file_size(static_cast<int>(tracker.uvm_fd)).value();
    tracker.rm_status = size == 0 ? abi::nv_err_illegal_action : init_status;
    if (size == 0) ++refused;
    if (tracker.rm_status == abi::nv_ok &&
        !is_mapped(tracker.queue_buffer, tracker.queue_entries * entry_bytes)) {
      tracker.rm_status = abi::nv_err_invalid_argument;
    }
    if (tracker.rm_status != abi::nv_ok) return;
    ++trackers;
    tracker_ = tracker;
  }

  /// A write from memory that must not be read fails.
  static bool is_mapped(std::uint64_t address, std::size_t size_bytes) {
    const os::Fd sink = os::create_memory_file("sink", 4096, os::MemorySeal::None).value();
    const std::size_t page = os::page_size();
    for (std::size_t at = 0; at < size_bytes; at += page) {
      if (::pwrite(sink.get(), reinterpret_cast<const void*>(address + at), 1, 0) != 1) return false;
    }
    return true;
  }

  abi::UvmToolsControl* control() const {
    return reinterpret_cast<abi::UvmToolsControl*>(tracker_.control_buffer);
  }

  os::FakeKernel& kernel_;
  abi::UvmToolsInitEventTracker tracker_{};
};

}  // namespace firebreak::watch
