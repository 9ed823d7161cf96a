// SPDX-License-Identifier: Apache-2.0
#include "agent/endings/hold/gpu_descriptors.h"

#include <algorithm>
#include <optional>
#include <span>
#include <utility>

#include "ground/os/descriptors.h"
#include "ground/os/processes.h"

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

bool cannot_be_said(const Result<bool>& same) { return !same && same.error().code != ErrorCode::Unsupported; }

/// Compares in their order. A thread that has ended has none to compare with: then those of one that lives
/// are.
std::vector<Result<bool>> are_same_files(os::Kernel& kernel, pid_t pid, std::span<const os::FilePair> files) {
  auto same = kernel.are_same_files(pid, files);
  if (std::ranges::none_of(same, cannot_be_said)) return same;
  const pid_t thread = os::living_thread(kernel, pid);
  return thread == pid ? same : kernel.are_same_files(thread, files);
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

Result<bool> add_gpu_descriptors_of(os::Kernel& kernel, pid_t pid, int& from, Numbers& seen,
                                    std::size_t& looked_at) {
  return os::visit_some_descriptors(kernel, pid, from, [&](int number, const std::string& target) {
    ++looked_at;
    if (const auto device = device_of(kernel, target)) seen.insert_or_assign(number, *device);
    return true;
  });
}

Duplicates Duplicates::give_back(os::Kernel& kernel, pid_t pid, const Numbers& now) {
  const auto has_number = [&](int number, const Duplicate& held) {
    const auto found = now.find(number);
    return found != now.end() && found->second == held.device;
  };
  std::vector<os::FilePair> files;
  std::vector<int> gone_numbers;
  for (const auto& [number, held] : duplicates_) {
    if (has_number(number, held)) files.push_back({number, &held.descriptor});
    if (!has_number(number, held)) gone_numbers.push_back(number);
  }
  const auto same = are_same_files(kernel, pid, files);
  for (std::size_t i = 0; i < files.size(); ++i) {
    // A device of the same name is taken for the same where Linux cannot say.
    if (!same[i].value_or(true)) gone_numbers.push_back(files[i].remote_number);
  }
  Duplicates gone;
  for (const int number : gone_numbers) gone.duplicates_.insert(duplicates_.extract(number));
  return gone;
}

Status Duplicates::take(os::Kernel& kernel, const os::Fd& process, const Numbers& now,
                        std::size_t held_besides) {
  Status all;
  std::vector<os::DescriptorLink> wanted;
  for (const auto& [number, device] : now) {
    if (duplicates_.contains(number)) continue;
    if (duplicates_.size() + wanted.size() + held_besides >= most_of_a_process) {
      all = fail(ErrorCode::ResourceExhausted,
                 "it has more of the GPU's descriptors than are held of a process");
      break;
    }
    if (wanted.size() >= most_at_once) {
      all = fail(ErrorCode::ResourceExhausted, "it has more of the GPU's descriptors than are taken at once");
      break;
    }
    wanted.push_back({number, link_of(kernel, device)});
  }
  auto taken = kernel.pidfd_getfds(process, wanted);
  for (std::size_t i = 0; i < wanted.size(); ++i) {
    const int number = wanted[i].number;
    if (!taken[i]) {
      const ErrorCode why = taken[i].error().code;
      if (all && (why == ErrorCode::ResourceExhausted || why == ErrorCode::Timeout))
        all = propagate(taken[i]);
      continue;
    }
    add_taken(number, now.at(number), std::move(*taken[i]));
  }
  return all;
}

void Duplicates::add_taken(int number, Device device, os::Fd descriptor) {
  Duplicate& duplicate = duplicates_.emplace(number, Duplicate{device, std::move(descriptor)}).first->second;
  if (device != Device::AddressSpace) return;
  if (const auto mark = os::mark_opening(duplicate.descriptor.get())) duplicate.mark = *mark;
}

bool Duplicates::has_still(os::Kernel& kernel, pid_t pid, std::uint32_t turn) const {
  const std::size_t parts = (duplicates_.size() + most_compared - 1) / most_compared;
  std::vector<os::FilePair> files;
  std::size_t place = 0;
  for (const auto& [number, held] : duplicates_) {
    if (place++ % parts == turn % parts) files.push_back({number, &held.descriptor});
  }
  return std::ranges::all_of(are_same_files(kernel, pid, files), [](const Result<bool>& same) {
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
