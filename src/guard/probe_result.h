// SPDX-License-Identifier: Apache-2.0
/// Whether the guard ranges work on this kernel and driver. It must have no rights for the CPU, and UVM's
/// source has a path, where the kernel knows device-private memory, that looks at the CPU's rights before it
/// serves the GPU. So it is tried once for each boot and driver (guard/probe.h), and the answer is left in a
/// file that no other user can write (os/file.h).
#pragma once

#include <string>

#include "os/kernel.h"

namespace firebreak::guard {

struct ProbeResult {
  enum class Answer { Untested, Works, Fails } answer = Answer::Untested;
  std::string reason;  ///< why it fails or was not tested
  friend bool operator==(const ProbeResult&, const ProbeResult&) = default;
};

/// What was found out since the last boot, with this driver; untested where nothing was.
ProbeResult known_probe_result(os::Kernel& kernel);

/// For who asks later. An untested one is not kept.
Status keep_probe_result(os::Kernel& kernel, const ProbeResult& result);

/// "works", "fails: REASON", "not tested: REASON".
std::string describe(const ProbeResult& result);

}  // namespace firebreak::guard
