// SPDX-License-Identifier: Apache-2.0
/// A library between a program and the driver, as those that limit memory are: it has functions of the
/// driver's names, and asks the driver for its own by these. FIREBREAK_TEST_SHIM_OF is the driver's path.
#include <dlfcn.h>

#include <cstdlib>

#include "shared/abi/cuda_driver_functions.h"
#include "shared/abi/cuda_driver_prototypes.h"

namespace {

template <class Function>
Function of_driver(const char* name) {
  static void* const driver = ::dlopen(std::getenv("FIREBREAK_TEST_SHIM_OF"), RTLD_NOW);
  return reinterpret_cast<Function>(::dlsym(driver, name));
}

}  // namespace

CUresult cuInit(unsigned int flags) { return of_driver<PFN_cuInit>("cuInit")(flags); }

/// It lets nobody have more than a gibibyte.
CUresult cuMemAlloc_v2(CUdeviceptr* pointer, std::size_t size_bytes) {
  if (size_bytes > std::size_t{1} << 30) return CUDA_ERROR_OPERATING_SYSTEM;
  return of_driver<PFN_cuMemAlloc_v2>("cuMemAlloc_v2")(pointer, size_bytes);
}
