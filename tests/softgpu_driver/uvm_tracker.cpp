// SPDX-License-Identifier: Apache-2.0
#include "tests/softgpu_driver/uvm_tracker.h"

#include <fcntl.h>

#include <atomic>
#include <cstdlib>
#include <string>
#include <utility>

namespace firebreak::test {

std::vector<os::Fd> uvm_descriptors(softgpu::DeviceKernel& devices, const Client& client) {
  std::vector<os::Fd> found;
  const std::string folder = "/proc/" + std::to_string(client.pid()) + "/fd";
  const auto names = devices.list_directory(folder);
  for (const std::string& name : names.value()) {
    const auto link = devices.read_link(folder + "/" + name);
    if (!link || *link != devices.uvm_link_target()) continue;
    found.push_back(devices.pidfd_getfd(client.pidfd(), std::atoi(name.c_str()), *link).value());
  }
  return found;
}

std::uint32_t Tracker::init(softgpu::DeviceKernel& devices, const os::Fd& uvm) {
  tools = devices.open(abi::uvm_tools_path, O_RDWR | O_NONBLOCK).value();
  abi::UvmToolsInitEventTracker request{};
  request.queue_buffer = reinterpret_cast<std::uint64_t>(queue.data());
  request.queue_entries = entries;
  request.control_buffer = reinterpret_cast<std::uint64_t>(control.data());
  request.uvm_fd = static_cast<std::uint32_t>(uvm.get());
  EXPECT_TRUE(devices.ioctl(tools, abi::uvm_tools_init_event_tracker, &request));
  return request.rm_status;
}

void Tracker::enable(softgpu::DeviceKernel& devices, std::uint64_t event_types) {
  abi::UvmToolsEnableEvents request{event_types, 0, 0};
  EXPECT_TRUE(devices.ioctl(tools, abi::uvm_tools_event_queue_enable_events, &request));
  EXPECT_EQ(request.rm_status, abi::nv_ok);
}

std::optional<abi::UvmEvent> Tracker::next(softgpu::DeviceKernel& devices) {
  auto* const shared = control.as<abi::UvmToolsControl>();
  const std::uint32_t at = shared->get_ahead;
  const auto is_there = [&] { return std::atomic_ref(shared->put_behind).load() != at; };
  while (!is_there()) {
    const int number = tools.get();
    const auto readable = devices.poll(std::span(&number, 1), std::chrono::seconds(30));
    if (!readable || readable->empty()) return std::nullopt;
    std::array<std::byte, 64> wake_up;
    static_cast<void>(devices.read(tools, wake_up));
  }
  const abi::UvmEvent event = static_cast<const abi::UvmEvent*>(queue.data())[at];
  shared->get_ahead = (at + 1) % entries;
  std::atomic_ref(shared->get_behind).store(shared->get_ahead);
  return event;
}

Tracker track(softgpu::DeviceKernel& devices, const Client& client, std::uint64_t event_types) {
  for (const os::Fd& uvm : uvm_descriptors(devices, client)) {
    Tracker tracker;
    if (tracker.init(devices, uvm) != abi::nv_ok) continue;
    tracker.enable(devices, event_types);
    return tracker;
  }
  ADD_FAILURE() << "no VA space";
  return {};
}

}  // namespace firebreak::test
