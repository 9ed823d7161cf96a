// SPDX-License-Identifier: Apache-2.0
#include "shared/guard_page/guard_view.h"

#include <fmt/format.h>

#include <algorithm>
#include <cstring>
#include <utility>

#include "ground/base/units.h"

namespace firebreak::guard {
namespace {

/// Longest time until an access is heard of, even where its listener is kept from the processor for a while.
constexpr Milliseconds heard_within{1000};

Nearest seen_from(const Allocation& allocation, std::uint64_t address) {
  if (address < allocation.address) return {allocation, allocation.address - address, Nearest::Side::Before};
  if (address < allocation.end()) return {allocation, address - allocation.address, Nearest::Side::Inside};
  return {allocation, address - allocation.end(), Nearest::Side::Past};
}

/// Inside a freed one, the last freed first; then the nearest that is alive, then the nearest freed one.
bool is_better(const Nearest& a, const Nearest& b) {
  const auto rank = [](const Nearest& nearest) {
    if (nearest.side == Nearest::Side::Inside) return 0;
    return nearest.allocation.freed_call == 0 ? 1 : 2;
  };
  if (rank(a) != rank(b)) return rank(a) < rank(b);
  if (rank(a) == 0) return a.allocation.call > b.allocation.call;
  return a.distance_bytes < b.distance_bytes;
}

std::string size_text(std::uint64_t bytes) {
  for (const auto& [unit, name] : {std::pair{gib, "GiB"}, std::pair{mib, "MiB"}, std::pair{kib, "KiB"}}) {
    if (bytes >= unit && bytes % unit == 0) return fmt::format("{} {}", bytes / unit, name);
  }
  return fmt::format("{} byte", bytes);
}

std::string bytes_text(std::uint64_t bytes) { return fmt::format("{} byte{}", bytes, bytes == 1 ? "" : "s"); }

bool has_no_address(abi::GuardFunction function) {
  return function == abi::GuardFunction::ArrayCreate || function == abi::GuardFunction::Array3DCreate ||
         function == abi::GuardFunction::MipmappedArrayCreate;
}

}  // namespace

Result<GuardView> GuardView::of(int descriptor) {
  if (!os::has_fixed_size(descriptor, sizeof(abi::GuardPage))) {
    return fail(ErrorCode::InvalidArgument, "not a guard page");
  }
  auto mapping = os::Mapping::of_file(descriptor, sizeof(abi::GuardPage), os::Protection::ReadWrite);
  if (!mapping) return propagate(mapping);
  GuardView view(std::move(*mapping));
  if (view.page().magic != abi::guard_page_magic || view.page().version != abi::guard_page_version) {
    return fail(ErrorCode::InvalidArgument, "a guard page of another version");
  }
  return view;
}

abi::GuardState GuardView::state() const {
  const auto state = page().state.load(std::memory_order_acquire);
  return state == 1 ? abi::GuardState::On : state == 0 ? abi::GuardState::Starting : abi::GuardState::Off;
}

void GuardView::say_heard() const {
  mapping_.as<abi::GuardPage>()->heard.store(1, std::memory_order_release);
}

std::string GuardView::note() const {
  const char* note = page().note;
  return std::string(note, strnlen(note, abi::guard_note_bytes));
}

std::uint64_t GuardView::guard_range_bytes() const { return page().guard_range_bytes.load(); }

std::uint64_t GuardView::allocating_calls() const { return page().allocating_calls.load(); }

bool GuardView::covers(std::uint64_t address, Monotonic when) const {
  const std::size_t ranges = std::min<std::size_t>(page().ranges.load(), abi::guard_ranges_max);
  return std::any_of(page().range, page().range + ranges, [&](const abi::GuardRange& range) {
    const std::int64_t until_ns = range.until_ns.load();  // the value may be any number: nothing is added to
                                                          // it
    const bool is_there = address >= range.begin.load() && address < range.end.load();
    return is_there && (until_ns == 0 || when - heard_within < from_ns(until_ns));
  });
}

std::optional<Allocation> GuardView::read(std::size_t slot) const {
  const abi::GuardAllocation& raw = page().allocation[slot];
  for (int tries = 0; tries < 8; ++tries) {
    const std::uint32_t before = raw.version.load(std::memory_order_acquire);
    const Allocation allocation{static_cast<abi::GuardFunction>(raw.function.load()), raw.address.load(),
                                raw.size_bytes.load(), raw.call.load(), raw.freed_call.load()};
    if (before % 2 != 0 || raw.version.load(std::memory_order_relaxed) != before) continue;
    const bool makes_sense = allocation.size_bytes != 0 && allocation.end() > allocation.address;
    if (static_cast<std::uint32_t>(allocation.function) == 0 || !makes_sense) return {};
    return allocation;
  }
  return {};  // its writer died in the middle, or writes on and on
}

std::optional<Nearest> GuardView::nearest(std::uint64_t address) const {
  const std::size_t used = std::min<std::size_t>(page().slots_used.load(), abi::guard_allocations_max);
  std::optional<Nearest> best;
  for (std::size_t slot = 0; slot < used; ++slot) {
    const auto allocation = read(slot);
    if (!allocation || has_no_address(allocation->function)) continue;
    const Nearest candidate = seen_from(*allocation, address);
    if (candidate.side != Nearest::Side::Inside && candidate.distance_bytes > nearest_bytes_max) continue;
    if (!best || is_better(candidate, *best)) best = candidate;
  }
  return best;
}

const char* to_string(abi::GuardFunction function) {
  switch (function) {
    case abi::GuardFunction::MemAlloc:
      return "cuMemAlloc";
    case abi::GuardFunction::MemAllocPitch:
      return "cuMemAllocPitch";
    case abi::GuardFunction::MemMap:
      return "cuMemMap";
    case abi::GuardFunction::MemAllocAsync:
      return "cuMemAllocAsync";
    case abi::GuardFunction::MemAllocManaged:
      return "cuMemAllocManaged";
    case abi::GuardFunction::MemHostAlloc:
      return "cuMemHostAlloc";
    case abi::GuardFunction::ArrayCreate:
      return "cuArrayCreate";
    case abi::GuardFunction::Array3DCreate:
      return "cuArray3DCreate";
    case abi::GuardFunction::MipmappedArrayCreate:
      return "cuMipmappedArrayCreate";
  }
  return "an unknown function";
}

std::string describe(const Nearest& nearest) {
  const Allocation& allocation = nearest.allocation;
  const std::string made = fmt::format("{} allocation made by {}, call {}", size_text(allocation.size_bytes),
                                       to_string(allocation.function), allocation.call);
  const std::string freed =
      allocation.freed_call == 0 ? "" : fmt::format(", freed by freeing call {}", allocation.freed_call);
  switch (nearest.side) {
    case Nearest::Side::Before:
      return fmt::format("{} before the begin of a {}{}", bytes_text(nearest.distance_bytes), made, freed);
    case Nearest::Side::Inside:
      return fmt::format("{} into a {}{}", bytes_text(nearest.distance_bytes), made, freed);
    case Nearest::Side::Past:
      break;
  }
  return fmt::format("{} past the end of a {}{}", bytes_text(nearest.distance_bytes), made, freed);
}

}  // namespace firebreak::guard
