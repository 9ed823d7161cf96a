// SPDX-License-Identifier: Apache-2.0
/// The layout says where a module's variables go, and which functions and shared variables each kernel
/// reaches.
#pragma once

#include <cstdint>
#include <vector>

#include "ground/base/result.h"
#include "kernels/ptx/ir.h"
#include "softgpu/interpreter/decode.h"
#include "softgpu/interpreter/interpreter.h"

namespace firebreak::softgpu {

/// Allocates .global and .const variables and writes their initial values. Shared variables stay at 0.
Result<AddressLayout> place_variables(const ptx::Module& module, const LoadedModule::AllocateGlobal& allocate,
                                      const LoadedModule::WriteGlobal& write);

/// Functions with a body that `entry` may call, itself included; by an indirect call any whose address is
/// taken.
std::vector<bool> reachable_functions(const ptx::Module& module, std::uint32_t entry);

/// Shared memory of one kernel.
struct SharedLayout {
  std::uint32_t static_bytes = 0;    ///< These are the variables with a size.
  std::uint32_t dynamic_offset = 0;  ///< Dynamic shared memory starts here.
};
/// Gives the shared variables that those functions use their addresses.
SharedLayout place_shared(const ptx::Module& module, const std::vector<bool>& reachable,
                          AddressLayout& addresses);

}  // namespace firebreak::softgpu
