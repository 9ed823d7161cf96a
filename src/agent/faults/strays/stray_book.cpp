// SPDX-License-Identifier: Apache-2.0
#include "agent/faults/strays/stray_book.h"

#include <utility>

#include "shared/guard_page/work_view.h"

namespace firebreak::strays {
namespace {

/// UVM tells of a fault by the page, or by the address.
constexpr std::uint64_t page_bytes = 4096;

/// A page fault in the tenant's own managed memory is how that memory works.
bool is_ordinary(const guard::Nearest& nearest) {
  return nearest.side == guard::Nearest::Side::Inside && nearest.allocation.freed_call == 0 &&
         nearest.allocation.function == abi::GuardFunction::MemAllocManaged;
}

}  // namespace

bool StrayBook::note(const watch::PageFault& page_fault, const guard::GuardView& guard) {
  if (!page_fault.fault.address || !guard.covers(*page_fault.fault.address, page_fault.fault.when))
    return false;
  const std::uint64_t address = *page_fault.fault.address;
  const std::uint64_t block = address / block_bytes;
  if (blocks_.contains(block) || blocks_.size() == blocks_max) {
    ++count_;
    return false;
  }
  // Asked for new blocks only: it is a search through all allocations.
  const auto nearest = guard.nearest(address);
  if (nearest && is_ordinary(*nearest)) return false;
  ++count_;
  blocks_.insert(block);
  const bool is_first = ripe_.empty();
  (is_first ? ripe_ : fresh_)
      .push_back(
          {page_fault, guard::describe_kernels(kernels_in_flight(guard.work(), guard::Since::Lately))});
  return is_first;
}

void StrayBook::note_fatal(std::uint64_t address) {
  const auto is_there = [address](const Noted& waiting) {
    return *waiting.page_fault.fault.address / page_bytes == address / page_bytes;
  };
  const std::size_t gone = std::erase_if(ripe_, is_there) + std::erase_if(fresh_, is_there);
  if (gone == 0) return;
  if (ripe_.empty()) ripe_ = std::exchange(fresh_, {});
  count_ -= gone;
  blocks_.erase(address / block_bytes);
}

std::vector<Stray> StrayBook::confirm(const guard::GuardView& guard) {
  std::vector<Stray> confirmed;
  for (const auto& [page_fault, kernels] : std::exchange(ripe_, std::exchange(fresh_, {}))) {
    Stray& stray = confirmed.emplace_back();
    stray.pid = page_fault.fault.pid.value_or(0);
    stray.domain = page_fault.fault.domain;
    stray.tenant = page_fault.fault.tenant;
    stray.address = *page_fault.fault.address;
    stray.access = page_fault.access;
    stray.kernels = kernels;
    if (const auto nearest = guard.nearest(stray.address)) stray.nearest = guard::describe(*nearest);
    stray.when = page_fault.fault.when;
    stray.count = count_;
    stray.blocks = ++told_;
  }
  return confirmed;
}

}  // namespace firebreak::strays
