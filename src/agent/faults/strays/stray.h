// SPDX-License-Identifier: Apache-2.0
/// A stray: an access of a guarded tenant's GPU code to addresses that are none of its own, which its guard
/// ranges took, so that nobody was harmed.
#pragma once

#include <sys/types.h>

#include <cstdint>
#include <optional>
#include <string>

#include "ground/base/clock.h"
#include "shared/abi/guard_page.h"

namespace firebreak::strays {

/// Largest cost of one stray: a managed range gets its memory in pieces of this size.
inline constexpr std::uint64_t block_bytes = std::uint64_t{2} << 20;

struct Stray {
  pid_t pid = 0;
  std::string domain;                 ///< domain as the watcher knows it; empty: not known
  std::optional<std::string> tenant;  ///< tenant, or the process's name
  std::uint64_t address = 0;
  std::string access;        ///< "store", "load", ...
  std::string kernels;       ///< "kernel `scale`", "one of ..."; empty: not known
  std::string nearest;       ///< "72 bytes past the end of a ... allocation ..."; empty: none is near
  Monotonic when{};          ///< time when its event was read
  std::uint64_t count = 0;   ///< page faults of strays of this process so far, with this one
  std::uint64_t blocks = 0;  ///< different blocks that it strayed into so far
};

/// The words of a process's guard page; the process itself writes them.
struct GuardReport {
  abi::GuardState state = abi::GuardState::Starting;
  std::string note;  ///< why it is off, or what it does not cover
  std::uint64_t guard_range_bytes = 0;
  friend bool operator==(const GuardReport&, const GuardReport&) = default;
};

/// The knowledge of one process.
struct Summary {
  std::optional<GuardReport> guard;  ///< empty: it has no guard page
  std::uint64_t count = 0;           ///< page faults of its strays so far
  std::uint64_t blocks = 0;          ///< blocks of those that were told
};

/// "store to 0x400000000048, 72 bytes past the end of a 64 MiB allocation made by cuMemAlloc, call 1204".
std::string describe(const Stray& stray);
/// "on", "off", "starting".
const char* to_string(abi::GuardState state);
/// "on, 1536 GiB", "off: no UVM descriptor".
std::string describe(const GuardReport& guard);

// One line each, for people and as JSON ("event": "stray", "guard").
std::string text_of(const Stray& stray);
std::string json_of(const Stray& stray);
std::string text_of(pid_t pid, const GuardReport& guard);
std::string json_of(pid_t pid, const GuardReport& guard);
// Tells, at the end of a process that strayed, what it did ("event": "strays").
std::string text_of(pid_t pid, const Summary& summary);
std::string json_of(pid_t pid, const Summary& summary);

}  // namespace firebreak::strays
