// SPDX-License-Identifier: Apache-2.0
#include "shared/guard_page/work_view.h"

#include <fmt/format.h>

#include <algorithm>
#include <cstring>

#include "ground/base/text.h"

namespace firebreak::guard {
namespace {

constexpr std::size_t names_told_max = 3;

std::size_t slots_of(const abi::GuardWork& work) {
  return std::min<std::size_t>(work.slots.load(std::memory_order_acquire), abi::guard_launch_slots_max);
}

LaunchState state_of_slot(const abi::GuardWork& work, std::size_t slot) {
  const abi::GuardLaunches& launches = work.launches[slot];
  const std::uint32_t done = work.done[slot].load(std::memory_order_acquire);
  const std::uint32_t begun = launches.begun.load(std::memory_order_acquire);
  if (begun == done) return LaunchState::Ended;
  return launches.marked.load() == begun ? LaunchState::Running : LaunchState::Unknown;
}

std::string name_of(const abi::GuardWork& work, std::uint16_t index) {
  if (index == 0 || index >= work.kernels.load(std::memory_order_acquire) || index >= abi::guard_kernels_max)
    return {};
  const char* const text = work.kernel[index];
  std::string name = printable({text, strnlen(text, abi::guard_kernel_name_bytes)});
  std::ranges::replace(name, '`', '?');  // which ends a name where it is told
  return name;
}

/// Adds those of one slot; false: they are not all known.
bool add_names(const abi::GuardWork& work, std::size_t slot, Since since, std::vector<std::string>& names) {
  const abi::GuardLaunches& launches = work.launches[slot];
  const std::uint32_t ended = since == Since::Lately ? launches.settled.load(std::memory_order_acquire)
                                                     : work.done[slot].load(std::memory_order_acquire);
  const std::uint32_t begun = launches.begun.load(std::memory_order_acquire);
  if (begun - ended > abi::guard_launches_kept) return false;
  for (std::uint32_t launch = begun; launch != ended; --launch) {
    std::string name = name_of(work, launches.kernel[(launch - 1) % abi::guard_launches_kept].load());
    if (name.empty()) return false;
    if (std::ranges::count(names, name) == 0) names.push_back(std::move(name));
  }
  // One that is launched meanwhile takes the place of the oldest.
  return launches.begun.load(std::memory_order_acquire) - ended <= abi::guard_launches_kept;
}

}  // namespace

LaunchState state_of(const abi::GuardWork& work) {
  bool all_ended = work.gaps.load() == 0 && work.captures.load() == 0;
  for (std::size_t slot = 0; slot < slots_of(work); ++slot) {
    const LaunchState state = state_of_slot(work, slot);
    if (state == LaunchState::Running) return state;
    all_ended = all_ended && state == LaunchState::Ended;
  }
  return all_ended ? LaunchState::Ended : LaunchState::Unknown;
}

const char* to_string(LaunchState state) {
  switch (state) {
    case LaunchState::Running:
      return "running";
    case LaunchState::Ended:
      return "ended";
    case LaunchState::Unknown:
      break;
  }
  return "unknown";
}

std::vector<std::string> kernels_in_flight(const abi::GuardWork& work, Since since) {
  std::vector<std::string> names;
  bool all_known = work.gaps.load() == 0 && work.captures.load() == 0;
  for (std::size_t slot = 0; slot < slots_of(work) && all_known; ++slot) {
    all_known = add_names(work, slot, since, names);
  }
  return all_known ? names : std::vector<std::string>();
}

std::string describe_kernels(const std::vector<std::string>& kernels) {
  if (kernels.empty()) return {};
  const bool is_call = kernels.front().ends_with("()");  // the name is that of a driver call: a copy, say
  if (kernels.size() == 1) return fmt::format("{}`{}`", is_call ? "" : "kernel ", kernels.front());
  std::string text = "one of ";
  const std::size_t told = std::min(kernels.size(), names_told_max);
  for (std::size_t n = 0; n < told; ++n) text += fmt::format("{}`{}`", n == 0 ? "" : ", ", kernels[n]);
  if (told < kernels.size()) text += fmt::format(" and {} others", kernels.size() - told);
  return text;
}

}  // namespace firebreak::guard
