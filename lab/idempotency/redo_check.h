// SPDX-License-Identifier: Apache-2.0
/// Faults at random instants: what was noted in a ring until then has to lead to the memory that there would
/// have been without the fault, or to a refusal that names what was in flight.
#pragma once

#include <cstdint>
#include <string>

namespace firebreak::idempotency {

struct RedoOptions {
  std::uint64_t faults = 300;
  std::uint64_t seed = 0;
};

struct RedoCounts {
  std::uint64_t faults = 0;
  std::uint64_t equal = 0;          ///< memory came out as without the fault
  std::uint64_t after_nothing = 0;  ///< of these: there was nothing to do
  std::uint64_t with_restored = 0;  ///< of these: saved bytes were put back
  std::uint64_t refused = 0;        ///< what was in flight cannot be done again
  std::uint64_t damaged = 0;        ///< the ring was damaged on purpose, and refused
  std::string problem;              ///< the first: what must not be; empty: nothing
};

/// Stops at the first problem.
RedoCounts check_redo(const RedoOptions& options);

std::string to_text(const RedoCounts& counts);

}  // namespace firebreak::idempotency
