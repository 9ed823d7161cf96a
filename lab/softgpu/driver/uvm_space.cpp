// SPDX-License-Identifier: Apache-2.0
#include "softgpu/driver/uvm_space.h"

#include <algorithm>
#include <array>
#include <chrono>
#include <iterator>
#include <memory>
#include <thread>
#include <utility>

#include "ground/base/clock.h"
#include "softgpu/machine/fault_delivery.h"

namespace firebreak::softgpu::driver {

namespace {

/// The memory that one fault brings: UVM's granule on the GPU.
struct alignas(64) Block {
  static constexpr std::uint64_t size_bytes = 65536;
  std::array<std::byte, size_bytes> bytes{};
};

bool holds_any(const std::vector<AddressSpan>& spans, const AddressSpan& wanted) {
  return std::any_of(spans.begin(), spans.end(), [&](const AddressSpan& span) { return span.holds(wanted); });
}

}  // namespace

UvmSpace::UvmSpace(UvmDescriptor descriptor, double speed, bool asks_cpu)
    : descriptor_(std::move(descriptor)), speed_(speed), asks_cpu_(asks_cpu) {
  space_.set_fault_handler(this);
}

bool UvmSpace::map(Translation range) {
  const AddressSpan span{range.begin, range.end};
  {
    const std::lock_guard lock(mutex_);
    // Looking at all takes as long as the process has much mapped, and a driver maps often.
    if (!populated_.empty()) forget_stale(descriptor_.managed_ranges());
  }
  if (descriptor_.has_managed_range_in(span) || !descriptor_.ranges().take(span)) return false;
  if (space_.map(std::move(range))) return true;
  descriptor_.ranges().give(span);
  return false;
}

bool UvmSpace::unmap(std::uint64_t begin, std::uint64_t size_bytes) {
  if (!space_.unmap(begin, size_bytes)) return false;
  descriptor_.ranges().give({begin, begin + size_bytes});
  return true;
}

bool UvmSpace::is_allowed(const PageFault& fault) const {
  const auto found = space_.find(fault.address);
  return found && (fault.access == GpuAccess::Load || found->access == PageAccess::ReadWrite);
}

FaultAnswer UvmSpace::handle(const PageFault& fault) {
  if (const auto sparse = descriptor_.ranges().find_sparse(fault.address))
    return {FaultAnswer::Kind::Sparse, sparse->end};
  const std::int64_t now = now_ns();
  const auto due = [&](double delay_ms) { return now + delay_ns(delay_ms, speed_); };
  const ServicedFaultProfile& profile = serviced_fault();
  {
    const std::lock_guard lock(mutex_);
    const std::vector<AddressSpan> managed = descriptor_.managed_ranges();
    forget_stale(managed);
    if (is_allowed(fault)) return {FaultAnswer::Kind::Serviced};  // somebody else's fault has brought it
    if (!populate(fault.address, asks_cpu_ ? descriptor_.ranges_open_to_cpu() : managed)) return {};
    descriptor_.post({due(profile.event_ms), now, fault.address, GpuFaultKind::UnmappedAccess, fault.access,
                      fault.replayable ? 1u : 0u, 0u});
  }
  std::this_thread::sleep_until(from_ns(due(profile.service_ms)));
  return {FaultAnswer::Kind::Serviced};
}

bool UvmSpace::populate(std::uint64_t address, const std::vector<AddressSpan>& managed) {
  const auto range = std::find_if(managed.begin(), managed.end(),
                                  [&](const AddressSpan& span) { return span.contains(address); });
  if (range == managed.end()) return false;
  const std::uint64_t block_begin = address & ~(Block::size_bytes - 1);
  std::uint64_t begin = std::max(block_begin, range->begin);
  std::uint64_t end = std::min(block_begin + Block::size_bytes, range->end);
  // Parts of the block may be there since the range was smaller.
  const auto after = populated_.upper_bound(address);
  if (after != populated_.end()) end = std::min(end, after->second.begin);
  if (after != populated_.begin()) begin = std::max(begin, std::prev(after)->second.end);
  const auto block = std::make_shared<Block>();
  const Translation piece{begin, end, block->bytes.data(), PageAccess::ReadWrite, block, true};
  if (!space_.map(piece)) return false;
  populated_.emplace(begin, piece);
  return true;
}

void UvmSpace::forget_stale(const std::vector<AddressSpan>& managed) {
  std::vector<Translation> stale;
  for (const auto& [begin, piece] : populated_) {
    if (!holds_any(managed, {piece.begin, piece.end})) stale.push_back(piece);
  }
  for (const Translation& piece : stale) replace_by_parts(piece, managed);
}

void UvmSpace::replace_by_parts(const Translation& piece, const std::vector<AddressSpan>& managed) {
  space_.unmap(piece.begin, piece.end - piece.begin);
  populated_.erase(piece.begin);
  for (const AddressSpan& span : managed) {
    Translation part = piece;
    part.begin = std::max(piece.begin, span.begin);
    part.end = std::min(piece.end, span.end);
    if (part.begin >= part.end) continue;
    part.host = piece.host + (part.begin - piece.begin);
    if (space_.map(part)) populated_.emplace(part.begin, part);
  }
}

}  // namespace firebreak::softgpu::driver
