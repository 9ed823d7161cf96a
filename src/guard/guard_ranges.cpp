// SPDX-License-Identifier: Apache-2.0
#include "guard/guard_ranges.h"

#include <charconv>
#include <string>
#include <utility>

namespace firebreak::guard {

Result<GuardRanges> GuardRanges::of_this_process(os::Kernel& kernel) {
  const std::string folder = "/proc/self/fd";
  const auto names = kernel.list_directory(folder);
  if (!names) return propagate(names);
  std::vector<int> descriptors;
  for (const std::string& name : *names) {
    const auto link = kernel.read_link(folder + "/" + name);
    if (!link || *link != kernel.uvm_link_target()) continue;
    int number = -1;
    std::from_chars(name.data(), name.data() + name.size(), number);
    if (number >= 0) descriptors.push_back(number);
  }
  if (descriptors.empty()) return fail(ErrorCode::NotFound, "this process has no UVM descriptor");
  return GuardRanges(std::move(descriptors));
}

Status GuardRanges::lay(os::AddressRange range, os::Occupant occupant) {
  Status last = fail(ErrorCode::Unsupported, "no UVM descriptor");
  for (const int descriptor : descriptors_) {
    last = os::map_device_range(descriptor, range, occupant);
    if (last) {
      descriptors_ = {descriptor};
      return last;
    }
    if (last.error().code == ErrorCode::Unavailable) return last;
  }
  return last;
}

}  // namespace firebreak::guard
