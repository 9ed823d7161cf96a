// SPDX-License-Identifier: Apache-2.0
/// The facts that cuPointerGetAttribute knows.
#pragma once

#include <cstdint>

#include "shared/abi/cuda_driver.h"
#include "softgpu/driver/process.h"

namespace firebreak::softgpu::driver {

/// The allocation or mapping around an address.
struct PointerInfo {
  bool known = false;
  std::uint64_t begin = 0;
  std::uint64_t size_bytes = 0;
  /// Answers of CU_POINTER_ATTRIBUTE_RANGE_...: for a mapping the reservation that it lies in (H200).
  std::uint64_t range_begin = 0;
  std::uint64_t range_bytes = 0;
  bool is_accessible = false;  ///< cuMemGetAddressRange knows of it
  bool on_host = false;
  bool managed = false;
  int handle_types = 0;
  std::uint64_t id = 0;
  CUcontext context = nullptr;
};

PointerInfo pointer_info(const Process& process, std::uint64_t address);

/// Writes the attribute, of the size that the manual says, or zero bytes of it. INVALID_VALUE for an address
/// that nothing is known of, NOT_SUPPORTED for an attribute that the software GPU has not.
CUresult write_pointer_attribute(const PointerInfo& info, CUpointer_attribute attribute,
                                 std::uint64_t address, void* data);

}  // namespace firebreak::softgpu::driver
