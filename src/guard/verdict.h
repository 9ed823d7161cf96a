// SPDX-License-Identifier: Apache-2.0
/// Whether the blanket works on this kernel and driver. It must have no rights for the CPU, and UVM's source
/// has a path, where the kernel knows device-private memory, that looks at the CPU's rights before it serves
/// the GPU. So it is tried once for each boot and driver (guard/trial.h), and the answer is left in a file
/// that no other user can write (os/runtime_file.h).
#pragma once

#include <string>

#include "os/kernel.h"

namespace firebreak::guard {

struct Verdict {
  enum class Word { Untested, Works, Fails } word = Word::Untested;
  std::string reason;  ///< why it fails or was not tested
  friend bool operator==(const Verdict&, const Verdict&) = default;
};

/// What was found out since the last boot, with this driver; untested where nothing was.
Verdict known_verdict(os::Kernel& kernel);

/// For who asks later. An untested one is not kept.
Status keep_verdict(os::Kernel& kernel, const Verdict& verdict);

/// "works", "fails: REASON", "not tested: REASON".
std::string describe(const Verdict& verdict);

}  // namespace firebreak::guard
