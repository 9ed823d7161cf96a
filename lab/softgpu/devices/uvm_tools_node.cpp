// SPDX-License-Identifier: Apache-2.0
#include "softgpu/devices/uvm_tools_node.h"

#include <algorithm>
#include <array>
#include <chrono>
#include <cstring>
#include <span>
#include <utility>

namespace firebreak::softgpu {

namespace {

// How often it is looked whether the program still has its end: rarely, since a real driver needs no thread.
constexpr std::int64_t look_again_ns = 250'000'000;
constexpr std::uint32_t nv_err_invalid_argument = 31;
constexpr std::uint32_t nv_err_in_use = 20;

std::uint32_t load(std::uint32_t& index) { return std::atomic_ref(index).load(); }
void store(std::uint32_t& index, std::uint32_t value) { std::atomic_ref(index).store(value); }

abi::UvmAccessType access_type(GpuAccess access) {
  switch (access) {
    case GpuAccess::Store:
      return abi::UvmAccessType::Write;
    case GpuAccess::Atomic:
      return abi::UvmAccessType::Atomic;
    case GpuAccess::Prefetch:
      return abi::UvmAccessType::Prefetch;
    default:
      return abi::UvmAccessType::Read;
  }
}

abi::UvmFaultType fault_type(GpuFaultKind kind) {
  return kind == GpuFaultKind::ReadOnlyViolation ? abi::UvmFaultType::Write : abi::UvmFaultType::InvalidPde;
}

abi::UvmEvent page_fault_event(const UvmPageFault& fault) {
  abi::UvmGpuFault info{};
  info.event_type = abi::UvmEventType::GpuFault;
  info.fault_type = fault_type(fault.kind);
  info.access_type = access_type(fault.access);
  info.address = fault.address;
  info.timestamp_ns = static_cast<std::uint64_t>(fault.when_ns);
  info.client_type = fault.replayable != 0 ? abi::UvmClientType::Gpc : abi::UvmClientType::Hub;
  return abi::UvmEvent::of(info);
}

abi::UvmEvent fatal_event(const UvmPageFault& fault) {
  abi::UvmFatalFault info{};
  info.event_type = abi::UvmEventType::FatalFault;
  info.fault_type = fault_type(fault.kind);
  info.access_type = access_type(fault.access);
  info.reason = fault.kind == GpuFaultKind::ReadOnlyViolation ? abi::UvmFatalReason::InvalidPermissions
                                                              : abi::UvmFatalReason::InvalidAddress;
  info.address = fault.address;
  info.timestamp_ns = static_cast<std::uint64_t>(fault.due_ns);
  return abi::UvmEvent::of(info);
}

}  // namespace

Result<UvmToolsNode::Opened> UvmToolsNode::open(int flags) {
  os::Fd descriptor;
  auto socket = NodeSocket::open(flags, descriptor);
  if (!socket) return propagate(socket);
  return Opened{std::move(descriptor), std::make_shared<UvmToolsNode>(std::move(*socket))};
}

UvmToolsNode::~UvmToolsNode() {
  stopping_.store(true);
  {
    const std::lock_guard lock(mutex_);
    if (target_) target_->wake().wake_all();
  }
  if (thread_.joinable()) thread_.join();
}

Status UvmToolsNode::ioctl(unsigned long request, void* argument) {
  if (request == abi::uvm_tools_init_event_tracker) {
    auto* tracker = static_cast<abi::UvmToolsInitEventTracker*>(argument);
    tracker->rm_status = init_tracker(*tracker);
    return {};
  }
  if (request == abi::uvm_tools_set_notification_threshold) {
    auto* threshold = static_cast<abi::UvmToolsSetNotificationThreshold*>(argument);
    threshold_.store(std::max(threshold->threshold, 1u));
    threshold->rm_status = abi::nv_ok;
    return {};
  }
  if (request == abi::uvm_tools_event_queue_enable_events ||
      request == abi::uvm_tools_event_queue_disable_events) {
    auto* events = static_cast<abi::UvmToolsEnableEvents*>(argument);
    const bool enable = request == abi::uvm_tools_event_queue_enable_events;
    enable ? enabled_events_.fetch_or(events->event_types) : enabled_events_.fetch_and(~events->event_types);
    events->rm_status = abi::nv_ok;
    return {};
  }
  return fail(ErrorCode::Unsupported, "the software GPU's UVM tools do not know this request");
}

std::uint32_t UvmToolsNode::init_tracker(const abi::UvmToolsInitEventTracker& request) {
  const std::lock_guard lock(mutex_);
  if (thread_.joinable()) return nv_err_in_use;
  const std::uint64_t entries = request.queue_entries;
  const bool power_of_two = entries >= 2 && entries <= 65536 && (entries & (entries - 1)) == 0;
  if (!power_of_two) return nv_err_invalid_argument;
  auto target = UvmDescriptor::from(static_cast<int>(request.uvm_fd));
  if (!target) return abi::nv_err_illegal_action;
  auto queue = PinnedBuffer::pin(request.queue_buffer, entries * sizeof(abi::UvmEvent));
  auto control = PinnedBuffer::pin(request.control_buffer, sizeof(abi::UvmToolsControl));
  if (!queue || !control) return nv_err_invalid_argument;
  queue_ = std::move(*queue);
  control_ = std::move(*control);
  queue_entries_ = static_cast<std::uint32_t>(entries);
  follower_ = RingFollower(target->posted());
  target_.emplace(std::move(*target));
  thread_ = std::thread(&UvmToolsNode::run, this);
  return abi::nv_ok;
}

void UvmToolsNode::run() {
  while (!stopping_.load() && !socket_.is_gone()) {
    const std::uint32_t seen = target_->wake().value();
    std::int64_t next = 0;
    {
      const std::lock_guard lock(mutex_);
      collect();
      if (write_due() && !wake_program()) break;
      const std::int64_t latest = now_ns() + follower_.sleep_ns(look_again_ns);
      next = std::min(waiting_.next_due_ns().value_or(latest), latest);
    }
    if (!stopping_.load()) target_->wake().wait(seen, std::chrono::nanoseconds(next - now_ns()));
  }
  end();
}

void UvmToolsNode::catch_up() {
  const std::lock_guard lock(mutex_);
  if (!target_) return;
  collect();
  (void)write_due();  // who asks needs no wake-up
}

/// Events that it kept of others do not wait until somebody asks for another node.
void UvmToolsNode::end() {
  const std::lock_guard lock(mutex_);
  target_.reset();
  socket_.close();
  ended_ = true;
}

bool UvmToolsNode::ended() const {
  const std::lock_guard lock(mutex_);
  return ended_ || socket_.is_gone();
}

void UvmToolsNode::collect() {
  follower_.collect(target_->ring(), now_ns(),
                    [this](const UvmPageFault& fault) { waiting_.add(fault.due_ns, fault); });
}

bool UvmToolsNode::write_due() {
  bool wrote = false;
  while (const UvmPageFault* fault = waiting_.due(now_ns())) {
    write_fault(*fault);
    waiting_.remove_first();
    wrote = true;
  }
  return wrote;
}

bool UvmToolsNode::wake_program() {
  auto* control = reinterpret_cast<abi::UvmToolsControl*>(control_.data());
  const std::uint32_t unread = (load(control->put_behind) - load(control->get_ahead)) & (queue_entries_ - 1);
  if (unread < threshold_.load() || socket_.has_unread()) return true;
  constexpr std::array<std::byte, 8> wake_up{std::byte{1}};
  return socket_.send(wake_up) != SendOutcome::Gone;
}

void UvmToolsNode::write_fault(const UvmPageFault& fault) {
  const std::uint64_t enabled = enabled_events_.load();
  if ((enabled & abi::uvm_event_mask(abi::UvmEventType::GpuFault)) != 0) write_event(page_fault_event(fault));
  const bool tells_fatal = (enabled & abi::uvm_event_mask(abi::UvmEventType::FatalFault)) != 0;
  if (fault.fatal != 0 && tells_fatal) write_event(fatal_event(fault));
}

void UvmToolsNode::write_event(const abi::UvmEvent& event) {
  auto* control = reinterpret_cast<abi::UvmToolsControl*>(control_.data());
  const std::uint32_t mask = queue_entries_ - 1;
  const std::uint32_t put = load(control->put_behind) & mask;
  if (((put + 1) & mask) == (load(control->get_behind) & mask)) {
    std::atomic_ref(control->dropped[static_cast<std::size_t>(event.type())]).fetch_add(1);
    return;
  }
  store(control->put_ahead, (put + 1) & mask);
  std::memcpy(queue_.data() + put * sizeof(event), &event, sizeof(event));
  store(control->put_behind, (put + 1) & mask);
}

}  // namespace firebreak::softgpu
