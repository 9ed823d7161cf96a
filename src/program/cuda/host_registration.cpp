// SPDX-License-Identifier: Apache-2.0
#include "program/cuda/host_registration.h"

namespace firebreak::cuda {

Result<HostRegistration> HostRegistration::create(const Driver& driver, std::span<std::byte> memory) {
  constexpr unsigned int flags = CU_MEMHOSTREGISTER_DEVICEMAP | CU_MEMHOSTREGISTER_PORTABLE;
  const auto registered =
      driver.check(driver->cuMemHostRegister(memory.data(), memory.size(), flags), "cuMemHostRegister");
  if (!registered) return propagate(registered);

  CUdeviceptr address = 0;
  const auto mapped = driver.check(driver->cuMemHostGetDevicePointer(&address, memory.data(), 0),
                                   "cuMemHostGetDevicePointer");
  HostRegistration registration(driver, Registration{memory.data(), address});
  if (!mapped) return propagate(mapped);
  return registration;
}

}  // namespace firebreak::cuda
