// SPDX-License-Identifier: Apache-2.0
#include "softgpu/machine/liveness.h"

#include <fstream>
#include <string>

#include "ground/os/processes.h"

namespace firebreak::softgpu {

bool is_alive(pid_t pid) {
  std::ifstream file("/proc/" + std::to_string(pid) + "/stat");
  std::string stat;
  std::getline(file, stat);
  return os::is_alive(stat);
}

}  // namespace firebreak::softgpu
