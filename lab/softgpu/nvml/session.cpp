// SPDX-License-Identifier: Apache-2.0
#include "softgpu/nvml/session.h"

#include <algorithm>

#include "softgpu/machine/device_uuid.h"

namespace firebreak::softgpu {

NvmlSession& NvmlSession::of_process() {
  static NvmlSession session;
  return session;
}

abi::nvmlReturn_t NvmlSession::init() {
  const std::lock_guard lock(mutex_);
  if (inits_ == 0) {
    for (std::uint32_t number = 0; number < gpu_count_from_environment(); ++number) {
      auto gpu = SharedGpu::open(SharedGpu::directory_from_environment(), number);
      if (!gpu) {
        gpus_.clear();
        const bool forbidden = gpu.error().code == ErrorCode::PermissionDenied;
        return forbidden ? abi::NVML_ERROR_NO_PERMISSION : abi::NVML_ERROR_DRIVER_NOT_LOADED;
      }
      gpus_.push_back(std::move(*gpu));
    }
  }
  ++inits_;
  return abi::NVML_SUCCESS;
}

abi::nvmlReturn_t NvmlSession::shutdown() {
  const std::lock_guard lock(mutex_);
  if (inits_ == 0) return abi::NVML_ERROR_UNINITIALIZED;
  if (--inits_ > 0) return abi::NVML_SUCCESS;
  sets_.clear();
  gpus_.clear();
  return abi::NVML_SUCCESS;
}

std::vector<std::shared_ptr<SharedGpu>> NvmlSession::gpus() {
  const std::lock_guard lock(mutex_);
  return gpus_;
}

abi::nvmlReturn_t NvmlSession::create_set(abi::nvmlEventSet_t* handle) {
  const std::lock_guard lock(mutex_);
  if (gpus_.empty()) return abi::NVML_ERROR_UNINITIALIZED;
  const auto set = std::make_shared<EventSet>(gpus_);
  sets_.insert(set);
  *handle = reinterpret_cast<abi::nvmlEventSet_t>(set.get());
  return abi::NVML_SUCCESS;
}

std::shared_ptr<EventSet> NvmlSession::set(abi::nvmlEventSet_t handle) {
  const std::lock_guard lock(mutex_);
  const auto is_it = [handle](const auto& set) {
    return reinterpret_cast<abi::nvmlEventSet_t>(set.get()) == handle;
  };
  const auto found = std::ranges::find_if(sets_, is_it);
  return found == sets_.end() ? nullptr : *found;
}

abi::nvmlReturn_t NvmlSession::free_set(abi::nvmlEventSet_t handle) {
  const auto found = set(handle);
  const std::lock_guard lock(mutex_);
  return sets_.erase(found) == 1 ? abi::NVML_SUCCESS : abi::NVML_ERROR_INVALID_ARGUMENT;
}

}  // namespace firebreak::softgpu
