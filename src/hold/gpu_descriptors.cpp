// SPDX-License-Identifier: Apache-2.0
#include "hold/gpu_descriptors.h"

#include <algorithm>
#include <optional>
#include <utility>

#include "os/descriptors.h"
#include "os/processes.h"

namespace firebreak::hold {
namespace {

std::optional<Device> device_of(const os::Kernel& kernel, const std::string& link) {
  if (link == kernel.uvm_link_target()) return Device::AddressSpace;
  if (link == kernel.rm_link_target()) return Device::ResourceManager;
  return std::nullopt;
}

std::string link_of(const os::Kernel& kernel, Device device) {
  return device == Device::AddressSpace ? kernel.uvm_link_target() : kernel.rm_link_target();
}

/// A thread that has ended has none to compare with.
Result<bool> is_same_file(os::Kernel& kernel, pid_t pid, int number, const os::Fd& held) {
  const auto same = kernel.is_same_file(pid, number, held);
  if (same || same.error().code == ErrorCode::Unsupported) return same;
  const pid_t thread = os::living_thread(kernel, pid);
  return thread == pid ? same : kernel.is_same_file(thread, number, held);
}

}  // namespace

Result<Numbers> gpu_descriptors_of(os::Kernel& kernel, pid_t pid) {
  Numbers numbers;
  const Status visited = os::visit_descriptors(kernel, pid, [&](int number, const std::string& target) {
    if (const auto device = device_of(kernel, target)) numbers.emplace(number, *device);
    return true;
  });
  if (!visited) return propagate(visited);
  return numbers;
}

Result<bool> add_gpu_descriptors_of(os::Kernel& kernel, pid_t pid, int& from, Numbers& seen) {
  return os::visit_some_descriptors(kernel, pid, from, [&](int number, const std::string& target) {
    if (const auto device = device_of(kernel, target)) seen.insert_or_assign(number, *device);
    return true;
  });
}

Duplicates Duplicates::give_back(os::Kernel& kernel, pid_t pid, const Numbers& now) {
  const auto is_still_there = [&](int number, const Duplicate& held) {
    const auto found = now.find(number);
    // Where Linux cannot say, a device of the same name is taken for the same.
    return found != now.end() && found->second == held.device &&
           is_same_file(kernel, pid, number, held.descriptor).value_or(true);
  };
  Duplicates gone;
  for (auto held = duplicates_.begin(); held != duplicates_.end();) {
    const auto here = held++;
    if (!is_still_there(here->first, here->second)) gone.duplicates_.insert(duplicates_.extract(here));
  }
  return gone;
}

Status Duplicates::take(os::Kernel& kernel, const os::Fd& process, const Numbers& now) {
  Status all;
  std::size_t tries = 0;
  for (const auto& [number, device] : now) {
    if (duplicates_.contains(number)) continue;
    if (duplicates_.size() >= most_of_a_process)
      return fail(ErrorCode::ResourceExhausted,
                  "it has more of the GPU's descriptors than are held of a process");
    if (tries++ >= most_at_once)
      return fail(ErrorCode::ResourceExhausted,
                  "it has more of the GPU's descriptors than are taken at once");
    auto taken = kernel.pidfd_getfd(process, number, link_of(kernel, device));
    if (!taken) {
      const ErrorCode why = taken.error().code;
      if (why == ErrorCode::ResourceExhausted || why == ErrorCode::Timeout) all = propagate(taken);
      continue;
    }
    Duplicate& duplicate = duplicates_.emplace(number, Duplicate{device, std::move(*taken)}).first->second;
    if (device != Device::AddressSpace) continue;
    if (const auto mark = os::mark_opening(duplicate.descriptor.get())) duplicate.mark = *mark;
  }
  return all;
}

bool Duplicates::are_all_of(os::Kernel& kernel, pid_t pid) const {
  return std::ranges::all_of(duplicates_, [&](const auto& entry) {
    const auto same = is_same_file(kernel, pid, entry.first, entry.second.descriptor);
    return same ? *same : same.error().code == ErrorCode::Unsupported;
  });
}

bool Duplicates::has(Device device) const {
  return std::ranges::any_of(duplicates_,
                             [device](const auto& entry) { return entry.second.device == device; });
}

std::vector<const Duplicate*> Duplicates::spaces() const {
  std::vector<const Duplicate*> spaces;
  for (const auto& [number, duplicate] : duplicates_) {
    if (duplicate.device == Device::AddressSpace) spaces.push_back(&duplicate);
  }
  return spaces;
}

std::vector<os::OpeningMark> Duplicates::marks() const {
  std::vector<os::OpeningMark> marks;
  for (const Duplicate* space : spaces()) {
    if (space->mark) marks.push_back(*space->mark);
  }
  return marks;
}

void Duplicates::add(Duplicate duplicate) {
  const int number = duplicates_.empty() ? 0 : duplicates_.rbegin()->first + 1;
  duplicates_.emplace(number, std::move(duplicate));
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
