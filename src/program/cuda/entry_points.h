// SPDX-License-Identifier: Apache-2.0
/// The driver's entry points as a table of function pointers, each under the driver's own name.
#pragma once

#include "ground/base/result.h"
#include "shared/abi/cuda_driver_functions.h"

namespace firebreak::cuda {

/// The CUDA version whose function types the table has; the driver is asked for exactly these.
inline constexpr int api_version = 12000;

/// One member for each row of needed.def, with the driver's own name. None is null once filled. Streams given
/// as null mean the legacy default stream.
struct EntryPoints {
#define CUDA_NEEDED(name, symbol) PFN_##symbol name = nullptr;
#include "program/cuda/needed.def"
#undef CUDA_NEEDED
};

/// Fills the table through the library's own resolver. Unsupported names the first entry point that is
/// missing.
Result<EntryPoints> resolve_entry_points(PFN_cuGetProcAddress_v2 get_proc_address);

}  // namespace firebreak::cuda
