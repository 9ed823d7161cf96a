// SPDX-License-Identifier: Apache-2.0
#include "program/guard/ledger.h"

#include <algorithm>
#include <cstring>
#include <utility>

namespace firebreak::guard {
namespace {

/// Runs `change` while readers see that the slot is being written. Its stores are none of them relaxed, so
/// that no fence is needed, which the thread sanitizer does not understand.
template <class Change>
void write(abi::GuardAllocation& slot, const Change& change) {
  const std::uint32_t version = slot.version.load(std::memory_order_relaxed);
  slot.version.store(version + 1, std::memory_order_relaxed);
  change(slot);
  slot.version.store(version + 2, std::memory_order_release);
}

}  // namespace

Result<Ledger> Ledger::create() {
  auto descriptor = os::create_memory_file(abi::guard_page_name, sizeof(abi::GuardPage));
  if (!descriptor) return propagate(descriptor);
  auto mapping = os::Mapping::of_file(descriptor->get(), sizeof(abi::GuardPage), os::Protection::ReadWrite);
  if (!mapping) return propagate(mapping);
  Ledger ledger(std::move(*descriptor), std::move(*mapping));
  ledger.page().version = abi::guard_page_version;
  ledger.page().magic = abi::guard_page_magic;
  return ledger;
}

void Ledger::set_state(abi::GuardState state, const std::string& note) {
  const std::lock_guard lock(books_->mutex);
  const std::size_t length = std::min(note.size(), abi::guard_note_bytes - 1);
  std::memcpy(page().note, note.data(), length);
  page().note[length] = '\0';
  page().state.store(static_cast<std::uint32_t>(state), std::memory_order_release);
}

std::optional<std::size_t> Ledger::choose_slot() {
  const std::uint64_t used = page().slots_used.load();
  if (used < abi::guard_allocations_max) {
    page().slots_used.store(used + 1);
    return used;
  }
  if (books_->freed.empty()) return {};
  const std::size_t slot = books_->freed.front();
  books_->freed.pop_front();
  return slot;
}

std::uint64_t Ledger::allocated(abi::GuardFunction function, std::uint64_t address,
                                std::uint64_t size_bytes) {
  const std::lock_guard lock(books_->mutex);
  const std::uint64_t call = page().allocating_calls.fetch_add(1) + 1;
  const auto slot = choose_slot();
  if (!slot) {
    page().forgotten.fetch_add(1);
    return call;
  }
  write(page().allocation[*slot], [&](abi::GuardAllocation& allocation) {
    allocation.function.store(static_cast<std::uint32_t>(function));
    allocation.address.store(address);
    allocation.size_bytes.store(size_bytes);
    allocation.call.store(call);
    allocation.freed_call.store(0);
  });
  books_->slots[address] = *slot;
  return call;
}

void Ledger::mark_freed(std::size_t slot, std::uint64_t call) {
  write(page().allocation[slot],
        [call](abi::GuardAllocation& allocation) { allocation.freed_call.store(call); });
  books_->freed.push_back(slot);
}

void Ledger::freed(std::uint64_t address) {
  const std::lock_guard lock(books_->mutex);
  const std::uint64_t call = page().freeing_calls.fetch_add(1) + 1;
  const auto found = books_->slots.find(address);
  if (found == books_->slots.end()) return;
  mark_freed(found->second, call);
  books_->slots.erase(found);
}

void Ledger::freed_within(std::uint64_t begin, std::uint64_t end) {
  const std::lock_guard lock(books_->mutex);
  const std::uint64_t call = page().freeing_calls.fetch_add(1) + 1;
  auto next = books_->slots.lower_bound(begin);
  while (next != books_->slots.end() && next->first < end) {
    mark_freed(next->second, call);
    next = books_->slots.erase(next);
  }
}

/// One that was never used, else the one that was given back first; null: all are covered.
abi::GuardRange* Ledger::choose_range() {
  const std::uint32_t used = page().ranges.load();
  if (used < abi::guard_ranges_max) return &page().range[used];
  abi::GuardRange* chosen = nullptr;
  for (abi::GuardRange& range : page().range) {
    const std::int64_t until_ns = range.until_ns.load();
    if (until_ns != 0 && (chosen == nullptr || until_ns < chosen->until_ns.load())) chosen = &range;
  }
  return chosen;
}

bool Ledger::covered(std::uint64_t begin, std::uint64_t end, std::uint64_t guard_range_bytes) {
  const std::lock_guard lock(books_->mutex);
  page().guard_range_bytes.store(guard_range_bytes);
  abi::GuardRange* const range = choose_range();
  if (range == nullptr) return false;
  range->end.store(0);
  range->begin.store(begin);
  range->until_ns.store(0);
  range->end.store(end);
  const std::uint32_t used = page().ranges.load();
  if (range == page().range + used) page().ranges.store(used + 1, std::memory_order_release);
  return true;
}

void Ledger::uncovered(std::uint64_t begin, std::uint64_t end, std::uint64_t guard_range_bytes,
                       Monotonic when) {
  const std::lock_guard lock(books_->mutex);
  page().guard_range_bytes.store(guard_range_bytes);
  for (std::uint32_t n = 0; n < page().ranges.load(); ++n) {
    abi::GuardRange& range = page().range[n];
    if (range.begin.load() != begin || range.end.load() != end || range.until_ns.load() != 0) continue;
    range.until_ns.store(to_ns(when));
    return;
  }
}

void Ledger::set_guard_range_bytes(std::uint64_t bytes) { page().guard_range_bytes.store(bytes); }

}  // namespace firebreak::guard
