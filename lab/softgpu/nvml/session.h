// SPDX-License-Identifier: Apache-2.0
/// What lies between nvmlInit and nvmlShutdown: the software GPU that the environment names, or several
/// of them (environment::count).
#pragma once

#include <memory>
#include <mutex>
#include <set>
#include <vector>

#include "ground/platform/nvml.h"
#include "softgpu/nvml/event_set.h"

namespace firebreak::softgpu {

/// Thread safe, and counted as NVML's is: as many shutdowns as inits end it.
class NvmlSession {
 public:
  /// The process's one: NVML's functions have no argument that could carry it.
  static NvmlSession& of_process();

  abi::nvmlReturn_t init();
  abi::nvmlReturn_t shutdown();

  /// None before init().
  std::vector<std::shared_ptr<SharedGpu>> gpus();

  abi::nvmlReturn_t create_set(abi::nvmlEventSet_t* handle);
  abi::nvmlReturn_t free_set(abi::nvmlEventSet_t handle);
  /// Null when it is none of ours. Who waits in it may go on after it was freed.
  std::shared_ptr<EventSet> set(abi::nvmlEventSet_t handle);

 private:
  std::mutex mutex_;  ///< guards everything below
  int inits_ = 0;
  std::vector<std::shared_ptr<SharedGpu>> gpus_;
  std::set<std::shared_ptr<EventSet>> sets_;
};

}  // namespace firebreak::softgpu
