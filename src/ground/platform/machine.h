// SPDX-License-Identifier: Apache-2.0
/// The origin of a result: every figure that leaves this program says it.
#pragma once

#include <string>

#include "ground/platform/platform.h"

namespace firebreak::platform {

struct Machine {
  std::string gpu;     ///< "NVIDIA H100 80GB HBM3", "Firebreak Software GPU"
  std::string driver;  ///< "580.159.04"; empty for the software GPU
  std::string linux_release;
  std::string commit;  ///< of the build, with "-dirty" where the tree had changes
  std::string date;    ///< UTC, "2026-11-21"
};

/// Returns the version of this build: "0.1.0 (4abfb87c1d2e)"; the version alone where the tree was no git
/// checkout.
std::string version();

/// Reads procfs only; what is not there stays empty.
Machine describe_machine(const Platform& platform);

}  // namespace firebreak::platform
