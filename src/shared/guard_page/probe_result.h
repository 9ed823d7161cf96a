// SPDX-License-Identifier: Apache-2.0
/// Results of probes: they say whether something that nobody documents works on this kernel and driver. Each
/// probe runs once for each boot and driver (shared/guard_page/probe_program.h), and its answer is left in a
/// file that no other user can write (ground/os/file.h).
#pragma once

#include <cstdint>
#include <string>

#include "ground/os/kernel.h"

namespace firebreak::guard {

enum class Probed : std::uint8_t {
  /// Guard ranges must have no rights for the CPU, and UVM's source has a path, where the kernel knows
  /// device-private memory, that looks at the CPU's rights before it serves the GPU.
  GuardRanges,
  /// A second instance of the driver in a process, to which a program moves (docs/how/spare.md).
  Spares,
};

struct ProbeResult {
  enum class Answer { Untested, Works, Fails } answer = Answer::Untested;
  std::string reason;  ///< why it fails or was not tested
  friend bool operator==(const ProbeResult&, const ProbeResult&) = default;
};

/// Returns what was found out since the last boot, with this driver; untested where nothing was.
ProbeResult known_probe_result(os::Kernel& kernel, Probed what);

/// Keeps a result for later questions. An untested one is not kept.
Status keep_probe_result(os::Kernel& kernel, Probed what, const ProbeResult& result);

/// "works", "fails: REASON", "not tested: REASON".
std::string describe(const ProbeResult& result);

}  // namespace firebreak::guard
