// SPDX-License-Identifier: Apache-2.0
/// The claims of the software GPU about itself.
#pragma once

#include "shared/abi/cuda_driver.h"
#include "softgpu/driver/answer.h"

namespace firebreak::softgpu::driver {

inline constexpr int compute_capability_major = 9;
inline constexpr int compute_capability_minor = 0;
inline constexpr int multiprocessor_count = 4;
inline constexpr int max_threads_per_block = 1024;
inline constexpr int max_threads_per_multiprocessor = 2048;
inline constexpr int max_blocks_per_multiprocessor = 32;
inline constexpr int registers_per_multiprocessor = 65536;
inline constexpr int shared_bytes_per_multiprocessor = 228 * 1024;
inline constexpr int shared_bytes_per_block = 48 * 1024;
inline constexpr int shared_bytes_per_block_optin = 227 * 1024;
inline constexpr int reserved_shared_bytes_per_block = 1024;

/// INVALID_VALUE for an attribute that the device does not know. `sm_count`: that the process may use.
Answer<int> device_attribute(CUdevice_attribute attribute, bool under_mps, int sm_count);

}  // namespace firebreak::softgpu::driver
