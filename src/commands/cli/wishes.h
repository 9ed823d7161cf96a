// SPDX-License-Identifier: Apache-2.0
/// What the user's environment asks of CUDA, where a tenant has a GPU and a share of it by its MPS domain
/// (pure).
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "ground/base/result.h"

namespace firebreak::cli {

struct GpuWish {
  std::string gpu;         ///< UUID, or how it begins; empty: any
  bool hides_all = false;  ///< the program is to see no GPU
  std::string note;        ///< what of it is not heeded; empty: all is
};

/// What CUDA_VISIBLE_DEVICES asks for on a machine with these GPUs, in the order of their numbers; none: they
/// are not known. NotFound: a GPU that is not there. Unsupported: it names what no domain can have.
Result<GpuWish> gpu_wish(const std::string& visible_devices, const std::vector<std::string>& uuids);

struct ShareWish {
  std::uint32_t percent = 0;  ///< 0: none
  std::string note;           ///< what of it is not heeded; empty: all is
};

/// What CUDA_MPS_ACTIVE_THREAD_PERCENTAGE asks for.
ShareWish share_wish(const std::string& percentage);

}  // namespace firebreak::cli
