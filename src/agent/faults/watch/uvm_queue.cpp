// SPDX-License-Identifier: Apache-2.0
#include "agent/faults/watch/uvm_queue.h"

#include <fcntl.h>

#include <array>
#include <atomic>
#include <cstring>

#include "ground/base/units.h"

namespace firebreak::watch {
namespace {

constexpr std::uint32_t mask = UvmQueue::entries - 1;
static_assert((UvmQueue::entries & mask) == 0, "the driver takes powers of two");

constexpr const char* tying = "tie a UVM event queue to a process";

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

Status UvmQueue::offered(os::Kernel& kernel) {
  const Result<os::Fd> fd = kernel.open(abi::uvm_tools_path, O_RDWR | O_NONBLOCK);
  return fd ? Status() : Status(explain_open(fd.error()));
}

Result<UvmQueue> UvmQueue::open(os::Kernel& kernel, const os::Fd& uvm_fd, std::uint64_t event_types) {
  Result<os::Fd> fd = kernel.open(abi::uvm_tools_path, O_RDWR | O_NONBLOCK);
  if (!fd) return explain_open(fd.error());
  Result<os::Mapping> control = os::Mapping::anonymous(os::page_size());
  if (!control) return propagate(control);
  UvmQueue result(std::move(*control), std::move(*fd));
  if (Status ready = result.init(kernel, uvm_fd); !ready) return propagate(ready);
  if (Status enabled = result.listen_to(kernel, event_types); !enabled) return propagate(enabled);
  return result;
}

Status UvmQueue::init(os::Kernel& kernel, const os::Fd& uvm_fd) {
  for (const UvmLayout layout : {UvmLayout::V2, UvmLayout::V1}) {
    const Result<bool> tied = try_layout(kernel, uvm_fd, layout);
    if (!tied) return propagate(tied, tying);
    if (*tied) return {};
  }
  return fail(ErrorCode::Protocol, std::string(tying) + ": the driver knows neither layout of events",
              "faults of memory are still seen in the kernel log, later");
}

/// False when the driver does not know this layout.
Result<bool> UvmQueue::try_layout(os::Kernel& kernel, const os::Fd& uvm_fd, UvmLayout layout) {
  const std::size_t page = os::page_size();
  const std::size_t size = round_up(entries * entry_bytes(layout), page);
  Result<os::Mapping> queue = os::Mapping::anonymous(size + page);
  if (!queue) return propagate(queue);
  if (Status forbidden = queue->forbid_tail(page); !forbidden) return propagate(forbidden);

  abi::UvmToolsInitEventTracker argument{};
  argument.queue_entries = entries;
  argument.control_buffer = reinterpret_cast<std::uintptr_t>(control_.data());
  argument.uvm_fd = static_cast<std::uint32_t>(uvm_fd.get());
  const unsigned long request =
      layout == UvmLayout::V1 ? abi::uvm_tools_init_event_tracker : abi::uvm_tools_init_event_tracker_v2;
  // A page too few: a driver that takes this has shorter entries.
  argument.queue_buffer = reinterpret_cast<std::uintptr_t>(queue->data()) + page;
  if (!kernel.ioctl(fd_, request, &argument)) return false;
  if (argument.rm_status == abi::nv_ok) {
    return fail(ErrorCode::Protocol, "the driver's events are shorter than those of layout " +
                                         std::string(to_string(layout)) + ", so what they say is not known");
  }
  const bool refused_the_buffer =
      argument.rm_status == abi::nv_err_invalid_address || argument.rm_status == abi::nv_err_invalid_argument;
  if (!refused_the_buffer) return fail_status("the driver refused", argument.rm_status);

  argument.queue_buffer = reinterpret_cast<std::uintptr_t>(queue->data());
  if (Status done = kernel.ioctl(fd_, request, &argument); !done) return propagate(done);
  if (argument.rm_status == abi::nv_err_invalid_address ||
      argument.rm_status == abi::nv_err_invalid_argument) {
    return fail(ErrorCode::Protocol, "the driver's events are longer than those of layout " +
                                         std::string(to_string(layout)) + ", so what they say is not known");
  }
  if (argument.rm_status != abi::nv_ok) return fail_status("the driver refused", argument.rm_status);
  queue_ = std::move(*queue);
  layout_ = layout;
  return true;
}

Status UvmQueue::listen_to(os::Kernel& kernel, std::uint64_t event_types) {
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

Result<std::uint64_t> UvmQueue::drain(os::Kernel& kernel,
                                      const std::function<void(std::span<const std::byte>)>& callback) {
  // A stand-in for the node wakes us through a counter that a read resets; the real node has no read and
  // refuses.
  std::array<std::byte, 8> counter{};
  static_cast<void>(kernel.read(fd_, counter));

  auto* control = control_.as<abi::UvmToolsControl>();
  const std::size_t size = entry_bytes(layout_);
  std::array<std::byte, sizeof(abi::UvmEventV2)> entry{};
  std::uint64_t count = 0;
  while (true) {
    const std::uint32_t put = std::atomic_ref(control->put_behind).load(std::memory_order_seq_cst);
    if (put >= entries) {
      return fail(ErrorCode::Protocol, "the driver's UVM queue has an index " + std::to_string(put) + " of " +
                                           std::to_string(entries) + ", so its layout is not known");
    }
    if (put == next_) return count;
    for (; next_ != put; next_ = (next_ + 1) & mask) {
      // The entry is copied: the driver could overwrite it meanwhile.
      std::memcpy(entry.data(), queue_.bytes().data() + next_ * size, size);
      callback(std::span(entry).first(size));
      ++count;
    }
    // The driver wakes us once for each place of the get index, so look again after moving it.
    std::atomic_ref(control->get_ahead).store(next_, std::memory_order_seq_cst);
    std::atomic_ref(control->get_behind).store(next_, std::memory_order_seq_cst);
  }
}

std::uint64_t UvmQueue::dropped() const { return dropped(~std::uint64_t{0}); }

std::uint64_t UvmQueue::dropped(std::uint64_t event_types) const {
  auto* control = control_.as<abi::UvmToolsControl>();
  std::uint64_t sum = 0;
  for (std::size_t type = 0; type < control->dropped.size(); ++type) {
    if ((event_types >> type & 1) == 0) continue;
    sum += std::atomic_ref(control->dropped[type]).load(std::memory_order_relaxed);
  }
  return sum;
}

}  // namespace firebreak::watch
