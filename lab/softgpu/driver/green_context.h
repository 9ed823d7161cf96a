// SPDX-License-Identifier: Apache-2.0
/// A part of the device's SMs, and contexts on such a part.
#pragma once

#include <memory>

#include "shared/abi/cuda_green_contexts.h"
#include "softgpu/driver/context.h"

namespace firebreak::softgpu::driver {

/// The result of cuDevResourceGenerateDesc.
struct ResourceDescription {
  unsigned int multiprocessors = 0;
};

/// Keeps its device's primary context, whose the memory and the modules are that are made in it.
struct GreenContext {
  std::shared_ptr<Context> context;
  CUdevice device = 0;
};

}  // namespace firebreak::softgpu::driver
