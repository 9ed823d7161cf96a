// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>
#include <vector>

#include "ground/base/result.h"
#include "ground/os/kernel.h"

namespace firebreak::platform {

struct ListedGpu {
  std::string uuid;
  std::string pci;  ///< as procfs writes it: "0000:3b:00.0"
};

/// NVIDIA's GPUs, from the driver's procfs, by their addresses, as NVML counts them; empty where that tells
/// none.
std::vector<ListedGpu> listed_gpus(os::Kernel& kernel);

/// The one that is, or begins with, `wanted`; `wanted` itself where none are listed. NotFound, with those
/// that there are; InvalidArgument where several begin so.
Result<std::string> choose_gpu(const std::vector<std::string>& uuids, const std::string& wanted);

}  // namespace firebreak::platform
