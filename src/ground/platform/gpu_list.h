// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>
#include <vector>

#include "ground/base/result.h"
#include "ground/os/kernel.h"

namespace firebreak::platform {

/// UUIDs of NVIDIA's GPUs, from the driver's procfs; empty where that tells none.
std::vector<std::string> listed_gpus(os::Kernel& kernel);

/// The one that is, or begins with, `wanted`; `wanted` itself where none are listed. NotFound, with those
/// that there are; InvalidArgument where several begin so.
Result<std::string> choose_gpu(const std::vector<std::string>& uuids, const std::string& wanted);

}  // namespace firebreak::platform
