// SPDX-License-Identifier: Apache-2.0
#include "softgpu/machine/self_description.h"

#include "ground/os/self.h"
#include "softgpu/environment.h"

namespace firebreak::softgpu {

const char* driver_name() {
  if (os::environment_variable(environment::one_instance) == "1")
    return "software GPU, one instance in a process";
  const bool asks = os::environment_variable(environment::uvm_asks_cpu) == "1";
  return asks ? "software GPU, its UVM asks what the CPU may do" : "software GPU";
}

}  // namespace firebreak::softgpu
