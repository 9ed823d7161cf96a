// SPDX-License-Identifier: Apache-2.0
#include "workloads/common/launch_queue.h"

namespace firebreak::workloads {

Result<Kernels> Kernels::find(const cuda::Module& module, std::span<const char* const> names) {
  Kernels kernels;
  for (const char* name : names) {
    const auto function = module.function(name);
    if (!function) return propagate(function);
    kernels.functions_.push_back(*function);
  }
  return kernels;
}

Status Kernels::replace_by(Result<Kernels> found) {
  if (!found) return propagate(found);
  *this = std::move(*found);
  return {};
}

}  // namespace firebreak::workloads
