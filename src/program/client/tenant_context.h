// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "program/client/failure.h"
#include "shared/abi/cuda_driver.h"

namespace firebreak::client {

/// The caller's to destroy.
struct TenantContext {
  CUcontext handle = nullptr;
  bool is_small = false;
};

/// fb_small_context gives this; it is current on the calling thread.
Outcome<TenantContext> make_small_context(int device, unsigned int multiprocessors);

}  // namespace firebreak::client
