// SPDX-License-Identifier: Apache-2.0
#include "os/kernel.h"

namespace firebreak::os {

Result<std::string> Kernel::gpu_driver() {
  const auto version = read_file("/proc/driver/nvidia/version");
  if (!version) return propagate(version);
  return version->substr(0, version->find('\n'));
}

}  // namespace firebreak::os
