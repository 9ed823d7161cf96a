// SPDX-License-Identifier: Apache-2.0
#include "softgpu/machine/uvm_ranges.h"

#include <algorithm>
#include <mutex>

#include "shared/abi/uvm_ranges.h"
#include "shared/abi/uvm_tools.h"

namespace firebreak::softgpu {

namespace {

bool any_overlaps(std::span<const AddressSpan> spans, const AddressSpan& with) {
  return std::any_of(spans.begin(), spans.end(),
                     [&](const AddressSpan& span) { return span.overlaps(with); });
}

}  // namespace

bool UvmRangeTable::is_range(std::uint64_t base, std::uint64_t length, std::uint64_t alignment_bytes) {
  return base % alignment_bytes == 0 && length % alignment_bytes == 0 && base != 0 && length != 0 &&
         base + length > base;
}

std::uint32_t UvmRangeTable::create_external(std::uint64_t base, std::uint64_t length,
                                             std::span<const AddressSpan> managed) {
  if (!is_range(base, length, abi::uvm_range_alignment_bytes)) return abi::nv_err_invalid_address;
  const AddressSpan span{base, base + length};
  const std::lock_guard lock(mutex_);
  if (any_overlaps(external_.all(), span) || any_overlaps(driver_.all(), span) ||
      any_overlaps(managed, span)) {
    return abi::nv_err_uvm_address_in_use;
  }
  return external_.add(span) ? abi::nv_ok : abi::nv_err_no_memory;
}

std::uint32_t UvmRangeTable::map_sparse(std::uint64_t base, std::uint64_t length) {
  if (!is_range(base, length, abi::uvm_sparse_alignment_bytes)) return abi::nv_err_invalid_address;
  const AddressSpan span{base, base + length};
  const std::lock_guard lock(mutex_);
  const auto holds = [&](const AddressSpan& outer) { return outer.holds(span); };
  if (std::ranges::none_of(external_.all(), holds)) return abi::nv_err_invalid_address;
  if (std::ranges::any_of(sparse_.all(), holds)) return abi::nv_ok;
  if (!sparse_.add(span)) return abi::nv_err_no_memory;
  has_sparse_.store(true);
  return abi::nv_ok;
}

std::uint32_t UvmRangeTable::free(std::uint64_t base, std::uint64_t length) {
  if (!is_range(base, length, abi::uvm_range_alignment_bytes)) return abi::nv_err_invalid_address;
  const AddressSpan span{base, base + length};
  const std::lock_guard lock(mutex_);
  if (std::ranges::find(external_.all(), span) == external_.all().end()) return abi::nv_err_invalid_address;
  sparse_.remove_inside(span);
  external_.remove_inside(span);
  has_sparse_.store(!sparse_.all().empty());
  return abi::nv_ok;
}

bool UvmRangeTable::take(const AddressSpan& span) {
  const std::lock_guard lock(mutex_);
  if (any_overlaps(external_.all(), span)) return false;
  driver_.add(span);
  return true;
}

void UvmRangeTable::give(const AddressSpan& span) {
  const std::lock_guard lock(mutex_);
  driver_.remove_inside(span);
}

std::optional<AddressSpan> UvmRangeTable::find_sparse(std::uint64_t address) const {
  if (!has_sparse_.load()) return std::nullopt;
  const std::lock_guard lock(mutex_);
  for (const AddressSpan& span : sparse_.all()) {
    if (span.contains(address)) return span;
  }
  return std::nullopt;
}

}  // namespace firebreak::softgpu
