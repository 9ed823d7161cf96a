// SPDX-License-Identifier: Apache-2.0
/// The view that somebody outside a guarded tenant has of its guard page (shared/abi/guard_page.h).
#pragma once

#include <cstdint>
#include <optional>
#include <string>

#include "ground/base/clock.h"
#include "ground/base/result.h"
#include "ground/os/memory.h"
#include "shared/abi/guard_page.h"

namespace firebreak::guard {

/// An allocation of a guarded tenant, as its page tells it.
struct Allocation {
  abi::GuardFunction function = abi::GuardFunction::MemAlloc;
  std::uint64_t address = 0;
  std::uint64_t size_bytes = 0;
  std::uint64_t call = 0;
  std::uint64_t freed_call = 0;  ///< 0: alive
  std::uint64_t end() const { return address + size_bytes; }
};

/// The place of a stray address, seen from the allocation that it most probably meant.
struct Nearest {
  Allocation allocation;
  std::uint64_t distance_bytes = 0;  ///< distance from the allocation's end, from its begin, or into it
  enum class Side { Before, Inside, Past } side = Side::Past;
};

/// Nobody strays further than this from an allocation that it meant; beyond, no allocation is named.
inline constexpr std::uint64_t nearest_bytes_max = std::uint64_t{16} << 30;

/// One mapped guard page. Every answer is read anew; a page full of nonsense gives nonsense answers and
/// nothing worse. Thread safe.
class GuardView {
 public:
  /// Maps a duplicate of the tenant's descriptor. InvalidArgument: it is no guard page, or one of another
  /// version.
  static Result<GuardView> of(int descriptor);

  abi::GuardState state() const;
  /// Why it is off, or what it could not cover; empty: nothing to say.
  std::string note() const;
  /// Tells the tenant that its strays are heard from now on.
  void say_heard() const;
  std::uint64_t guard_range_bytes() const;
  std::uint64_t allocating_calls() const;
  /// Returns what the tenant has launched (shared/guard_page/work_view.h); it lives as long as this.
  const abi::GuardWork& work() const { return page().work; }
  /// True when the guard ranges cover the address at `when`, or did until lately: an access that strayed
  /// there was serviced, and is heard of later.
  bool covers(std::uint64_t address, Monotonic when) const;
  /// Returns the allocation in which the address was freed lately; else the nearest one that is alive, within
  /// nearest_bytes_max; empty: there is none.
  std::optional<Nearest> nearest(std::uint64_t address) const;

 private:
  explicit GuardView(os::Mapping mapping) : mapping_(std::move(mapping)) {}
  const abi::GuardPage& page() const { return *mapping_.as<const abi::GuardPage>(); }
  std::optional<Allocation> read(std::size_t slot) const;

  os::Mapping mapping_;
};

/// "cuMemAlloc", "cuMemMap", ...; "an unknown function" for a number that we do not know.
const char* to_string(abi::GuardFunction function);

/// "72 bytes past the end of a 64 MiB allocation made by cuMemAlloc, call 1204".
std::string describe(const Nearest& nearest);

}  // namespace firebreak::guard
