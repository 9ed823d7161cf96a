// SPDX-License-Identifier: Apache-2.0
// A CUDA driver that has the software GPU behind it and exports what a real driver does: nothing that raises
// faults of the device.
#include "ground/os/self.h"
#include "shared/abi/cuda_driver_functions.h"

extern "C" __attribute__((visibility("default"))) CUresult cuGetProcAddress_v2(
    const char* name, void** function, int version, std::uint64_t flags,
    CUdriverProcAddressQueryResult* status) {
  const auto symbol = firebreak::os::load_symbol(FIREBREAK_SOFTGPU_LIBRARY, "cuGetProcAddress_v2");
  if (!symbol) return CUDA_ERROR_NOT_FOUND;
  return reinterpret_cast<PFN_cuGetProcAddress_v2>(*symbol)(name, function, version, flags, status);
}
