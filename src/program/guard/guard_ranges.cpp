// SPDX-License-Identifier: Apache-2.0
#include "program/guard/guard_ranges.h"

#include <algorithm>
#include <charconv>
#include <string>
#include <utility>

namespace firebreak::guard {

Result<std::vector<int>> uvm_descriptors_of_this_process(os::Kernel& kernel) {
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
  return descriptors;
}

Result<GuardRanges> GuardRanges::of_this_process(os::Kernel& kernel, FindDescriptors find) {
  GuardRanges ranges(kernel, std::move(find));
  if (const Status found = ranges.find_descriptors(); !found) return propagate(found);
  return ranges;
}

/// The caller holds the lock, or nobody else has it yet.
Status GuardRanges::find_descriptors() {
  std::vector<int> its = find_ ? find_() : std::vector<int>{};
  if (its.empty()) {
    auto all = uvm_descriptors_of_this_process(kernel_);
    if (!all) return propagate(all);
    its = std::move(*all);
  }
  books_->descriptors = std::move(its);
  return {};
}

Status GuardRanges::map(os::AddressRange range, os::Occupant occupant) {
  Status last = fail(ErrorCode::Unsupported, "no UVM descriptor");
  for (const int descriptor : books_->descriptors) {
    last = os::map_device_range(descriptor, range, occupant);
    if (last) {
      books_->descriptors = {descriptor};
      return last;
    }
    if (last.error().code == ErrorCode::Unavailable) return last;
  }
  return last;
}

Status GuardRanges::lay(os::AddressRange range, os::Occupant occupant) {
  const std::lock_guard lock(books_->mutex);
  Status laid = map(range, occupant);
  if (laid) books_->laid.add(range);
  return laid;
}

Status GuardRanges::cut_reserved(os::AddressRange range) {
  const std::lock_guard lock(books_->mutex);
  Status held = os::hold_range(range);
  if (held) books_->laid.remove(range);
  return held;
}

void GuardRanges::release(os::AddressRange range) {
  const std::lock_guard lock(books_->mutex);
  os::release_range(range);
  books_->laid.remove(range);
}

/// The ranges of the address space before end with this: Linux takes the old mapping away for the new one.
Status GuardRanges::follow() {
  const std::lock_guard lock(books_->mutex);
  const std::vector<int> before = books_->descriptors;  // one of them, once a range lies
  Status all = find_descriptors();
  const bool is_the_same = before.size() == 1 && std::ranges::count(books_->descriptors, before.front()) != 0;
  if (is_the_same) {
    books_->descriptors = before;
    return all;
  }
  if (!all) books_->descriptors.clear();
  for (const os::AddressRange& range : books_->laid.all()) {
    const Status laid = map(range, os::Occupant::Placeholder);
    if (laid) continue;
    if (all) all = laid;
    (void)os::hold_range(range);  // nobody else comes to lie there
    books_->laid.remove(range);
  }
  return all;
}

void GuardRanges::leave() {
  const std::lock_guard lock(books_->mutex);
  for (const os::AddressRange& range : books_->laid.all()) (void)os::hold_range(range);
  books_->descriptors.clear();
}

}  // namespace firebreak::guard
