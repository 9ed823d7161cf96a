// SPDX-License-Identifier: Apache-2.0
#include "hold/gpu_descriptors.h"

#include <algorithm>
#include <charconv>
#include <functional>
#include <optional>
#include <utility>

namespace firebreak::hold {
namespace {

std::optional<Device> device_of(const os::Kernel& kernel, const std::string& link) {
  if (link == kernel.uvm_link_target()) return Device::AddressSpace;
  if (link == kernel.rm_link_target()) return Device::ResourceManager;
  return std::nullopt;
}

}  // namespace

Result<Numbers> gpu_descriptors_of(os::Kernel& kernel, pid_t pid) {
  const std::string directory = "/proc/" + std::to_string(pid) + "/fd";
  const auto names = kernel.list_directory(directory);
  if (!names) return propagate(names);
  Numbers numbers;
  for (const std::string& name : *names) {
    int number = -1;
    if (std::from_chars(name.data(), name.data() + name.size(), number).ec != std::errc{}) continue;
    // Descriptors come and go while we look.
    const auto link = kernel.read_link(directory + "/" + name);
    if (const auto device = link ? device_of(kernel, *link) : std::nullopt) numbers.emplace(number, *device);
  }
  return numbers;
}

bool Duplicates::follow(os::Kernel& kernel, const os::Fd& process, const Numbers& now) {
  const auto is_still_there = [&](const auto& held) {
    const auto found = now.find(held.first);
    return found != now.end() && found->second == held.second.device;
  };
  if (!duplicates_.empty() && std::ranges::none_of(duplicates_, is_still_there)) return true;
  std::erase_if(duplicates_, std::not_fn(is_still_there));
  for (const auto& [number, device] : now) {
    if (duplicates_.contains(number)) continue;
    if (auto taken = kernel.pidfd_getfd(process, number)) {
      duplicates_.emplace(number, Duplicate{device, std::move(*taken)});
    }
  }
  return false;
}

std::vector<os::Fd> Duplicates::release(Device device) {
  std::vector<os::Fd> released;
  for (auto held = duplicates_.begin(); held != duplicates_.end();) {
    if (held->second.device == device) {
      released.push_back(std::move(held->second.descriptor));
      held = duplicates_.erase(held);
    } else {
      ++held;
    }
  }
  return released;
}

}  // namespace firebreak::hold
