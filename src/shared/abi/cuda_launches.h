// SPDX-License-Identifier: Apache-2.0
/// A launch as one structure. The CUDA driver's own layout: the comparison with NVIDIA's header is in
/// tests/toolkit/toolkit_launches_check.cpp.
#pragma once

#include "shared/abi/cuda_opaque_types.h"

struct CUDA_LAUNCH_PARAMS {
  CUfunction function;
  unsigned int gridDimX;
  unsigned int gridDimY;
  unsigned int gridDimZ;
  unsigned int blockDimX;
  unsigned int blockDimY;
  unsigned int blockDimZ;
  unsigned int sharedMemBytes;
  CUstream hStream;
  void** kernelParams;
};
