// SPDX-License-Identifier: Apache-2.0
// Compiled only where a CUDA toolkit is installed: the layout of shared/abi/cuda_launches.h must be the
// toolkit's. Ours comes first and inside a namespace.
#include <cstddef>
#include <cstdint>

namespace ours {
#include "shared/abi/cuda_launches.h"
}  // namespace ours

#include <cuda.h>

#include "tests/toolkit/toolkit_comparison.h"

namespace {

using firebreak::cuda::same_size;

static_assert(same_size<ours::CUDA_LAUNCH_PARAMS, CUDA_LAUNCH_PARAMS>());
static_assert(offsetof(ours::CUDA_LAUNCH_PARAMS, function) == offsetof(CUDA_LAUNCH_PARAMS, function));
static_assert(sizeof(ours::CUDA_LAUNCH_PARAMS::function) == sizeof(CUDA_LAUNCH_PARAMS::function));
static_assert(offsetof(ours::CUDA_LAUNCH_PARAMS, gridDimX) == offsetof(CUDA_LAUNCH_PARAMS, gridDimX));
static_assert(sizeof(ours::CUDA_LAUNCH_PARAMS::gridDimX) == sizeof(CUDA_LAUNCH_PARAMS::gridDimX));
static_assert(offsetof(ours::CUDA_LAUNCH_PARAMS, gridDimY) == offsetof(CUDA_LAUNCH_PARAMS, gridDimY));
static_assert(sizeof(ours::CUDA_LAUNCH_PARAMS::gridDimY) == sizeof(CUDA_LAUNCH_PARAMS::gridDimY));
static_assert(offsetof(ours::CUDA_LAUNCH_PARAMS, gridDimZ) == offsetof(CUDA_LAUNCH_PARAMS, gridDimZ));
static_assert(sizeof(ours::CUDA_LAUNCH_PARAMS::gridDimZ) == sizeof(CUDA_LAUNCH_PARAMS::gridDimZ));
static_assert(offsetof(ours::CUDA_LAUNCH_PARAMS, blockDimX) == offsetof(CUDA_LAUNCH_PARAMS, blockDimX));
static_assert(sizeof(ours::CUDA_LAUNCH_PARAMS::blockDimX) == sizeof(CUDA_LAUNCH_PARAMS::blockDimX));
static_assert(offsetof(ours::CUDA_LAUNCH_PARAMS, blockDimY) == offsetof(CUDA_LAUNCH_PARAMS, blockDimY));
static_assert(sizeof(ours::CUDA_LAUNCH_PARAMS::blockDimY) == sizeof(CUDA_LAUNCH_PARAMS::blockDimY));
static_assert(offsetof(ours::CUDA_LAUNCH_PARAMS, blockDimZ) == offsetof(CUDA_LAUNCH_PARAMS, blockDimZ));
static_assert(sizeof(ours::CUDA_LAUNCH_PARAMS::blockDimZ) == sizeof(CUDA_LAUNCH_PARAMS::blockDimZ));
static_assert(offsetof(ours::CUDA_LAUNCH_PARAMS, sharedMemBytes) ==
              offsetof(CUDA_LAUNCH_PARAMS, sharedMemBytes));
static_assert(sizeof(ours::CUDA_LAUNCH_PARAMS::sharedMemBytes) == sizeof(CUDA_LAUNCH_PARAMS::sharedMemBytes));
static_assert(offsetof(ours::CUDA_LAUNCH_PARAMS, hStream) == offsetof(CUDA_LAUNCH_PARAMS, hStream));
static_assert(sizeof(ours::CUDA_LAUNCH_PARAMS::hStream) == sizeof(CUDA_LAUNCH_PARAMS::hStream));
static_assert(offsetof(ours::CUDA_LAUNCH_PARAMS, kernelParams) == offsetof(CUDA_LAUNCH_PARAMS, kernelParams));
static_assert(sizeof(ours::CUDA_LAUNCH_PARAMS::kernelParams) == sizeof(CUDA_LAUNCH_PARAMS::kernelParams));

}  // namespace
