// SPDX-License-Identifier: Apache-2.0
#include "watch/uvm_queue.h"

#include <fcntl.h>

#include <array>
#include <atomic>

namespace firebreak::watch {
namespace {

constexpr std::uint32_t mask = UvmQueue::entries - 1;
static_assert((UvmQueue::entries & mask) == 0, "the driver takes powers of two");

tl::unexpected<Error> fail_status(const std::string& doing, std::uint32_t status) {
  const std::string message = doing + ": driver status " + std::to_string(status);
  if (status == abi::nv_err_illegal_action) return fail(ErrorCode::Unsupported, message);
  if (status == abi::nv_err_insufficient_permissions) {
    return fail(ErrorCode::PermissionDenied, message, "run as root or as the target's user");
  }
  return fail(ErrorCode::Device, message);
}

tl::unexpected<Error> explain_open(const Error& error) {
  const std::string message = "no UVM events: " + error.message;
  if (error.code == ErrorCode::PermissionDenied) {
    return fail(error.code, message,
                std::string("give this user read and write access to ") + abi::uvm_tools_path);
  }
  if (error.code == ErrorCode::NotFound)
    return fail(error.code, message, "load nvidia-uvm: nvidia-modprobe -u -c 0");
  return fail(error.code, message, error.hint);
}

}  // namespace

Result<UvmQueue> UvmQueue::open(os::Kernel& kernel, const os::Fd& uvm_fd, std::uint64_t event_types) {
  Result<os::Fd> fd = kernel.open(abi::uvm_tools_path, O_RDWR | O_NONBLOCK);
  if (!fd) return explain_open(fd.error());
  Result<os::Mapping> queue = os::Mapping::anonymous(std::size_t{entries} * sizeof(abi::UvmEvent));
  if (!queue) return propagate(queue);
  Result<os::Mapping> control = os::Mapping::anonymous(os::page_size());
  if (!control) return propagate(control);
  UvmQueue result(std::move(*queue), std::move(*control), std::move(*fd));
  if (Status ready = result.init(kernel, uvm_fd); !ready) return propagate(ready);
  if (Status enabled = result.enable(kernel, event_types); !enabled) return propagate(enabled);
  return result;
}

Status UvmQueue::init(os::Kernel& kernel, const os::Fd& uvm_fd) {
  abi::UvmToolsInitEventTracker argument{};
  argument.queue_buffer = reinterpret_cast<std::uintptr_t>(queue_.data());
  argument.queue_entries = entries;
  argument.control_buffer = reinterpret_cast<std::uintptr_t>(control_.data());
  argument.uvm_fd = static_cast<std::uint32_t>(uvm_fd.get());
  const Status done = kernel.ioctl(fd_, abi::uvm_tools_init_event_tracker, &argument);
  if (!done) return propagate(done, "tie a UVM event queue to a process");
  if (argument.rm_status != abi::nv_ok) {
    return fail_status("tie a UVM event queue to a process", argument.rm_status);
  }
  return {};
}

Status UvmQueue::enable(os::Kernel& kernel, std::uint64_t event_types) {
  abi::UvmToolsSetNotificationThreshold threshold{1, 0};
  if (Status done = kernel.ioctl(fd_, abi::uvm_tools_set_notification_threshold, &threshold); !done) {
    return propagate(done, "set the threshold of UVM events");
  }
  if (threshold.rm_status != abi::nv_ok)
    return fail_status("set the threshold of UVM events", threshold.rm_status);
  abi::UvmToolsEnableEvents events{event_types, 0, 0};
  if (Status done = kernel.ioctl(fd_, abi::uvm_tools_event_queue_enable_events, &events); !done) {
    return propagate(done, "enable UVM events");
  }
  if (events.rm_status != abi::nv_ok) return fail_status("enable UVM events", events.rm_status);
  return {};
}

std::uint64_t UvmQueue::drain(os::Kernel& kernel, const std::function<void(const abi::UvmEvent&)>& callback) {
  // A stand-in for the node wakes us through a counter that a read resets; the real node has no read and
  // refuses.
  std::array<std::byte, 8> counter{};
  static_cast<void>(kernel.read(fd_, counter));

  auto* control = control_.as<abi::UvmToolsControl>();
  const auto* events = static_cast<const abi::UvmEvent*>(queue_.data());
  std::uint64_t count = 0;
  while (true) {
    const std::uint32_t put = std::atomic_ref(control->put_behind).load(std::memory_order_seq_cst) & mask;
    if (put == next_) return count;
    for (; next_ != put; next_ = (next_ + 1) & mask) {
      const abi::UvmEvent event = events[next_];
      callback(event);
      ++count;
    }
    // The driver wakes us once for each place of the get index, so look again after moving it.
    std::atomic_ref(control->get_ahead).store(next_, std::memory_order_seq_cst);
    std::atomic_ref(control->get_behind).store(next_, std::memory_order_seq_cst);
  }
}

std::uint64_t UvmQueue::dropped(abi::UvmEventType type) const {
  auto* control = control_.as<abi::UvmToolsControl>();
  return std::atomic_ref(control->dropped[static_cast<std::uint8_t>(type)]).load(std::memory_order_relaxed);
}

}  // namespace firebreak::watch
