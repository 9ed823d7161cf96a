// SPDX-License-Identifier: Apache-2.0
#include "program/virtual/later_frees.h"

#include <algorithm>

namespace firebreak::virtual_driver {

CUresult LaterFrees::add(const Instance& active, CUstream stream, bool per_thread, CUdeviceptr address) {
  const cuda::Backend& driver = active.driver();
  CUevent event = nullptr;
  if (const CUresult made = driver.cuEventCreate(&event, CU_EVENT_DISABLE_TIMING); made != CUDA_SUCCESS)
    return made;
  const std::lock_guard lock(mutex_);
  const bool is_freed = std::ranges::any_of(all_, [&](const Later& each) { return each.address == address; });
  const auto record = per_thread ? driver.cuEventRecord_ptsz : driver.cuEventRecord;
  const CUresult recorded = is_freed ? CUDA_ERROR_INVALID_VALUE : record(event, stream);
  if (recorded != CUDA_SUCCESS) {
    driver.cuEventDestroy_v2(event);
    return recorded;
  }
  all_.push_back({address, event, active.slot()});
  return CUDA_SUCCESS;
}

bool LaterFrees::add_until_all_waited(const Instance& active, CUdeviceptr address) {
  const std::lock_guard lock(mutex_);
  const bool is_freed = std::ranges::any_of(all_, [&](const Later& each) { return each.address == address; });
  if (!is_freed) all_.push_back({address, nullptr, active.slot()});
  return !is_freed;
}

bool LaterFrees::wants_wait() const {
  const std::lock_guard lock(mutex_);
  return std::ranges::any_of(all_, [](const Later& each) { return each.event == nullptr; });
}

bool LaterFrees::holds(CUdeviceptr address) const {
  const std::lock_guard lock(mutex_);
  return std::ranges::any_of(all_, [&](const Later& each) { return each.address == address; });
}

void LaterFrees::take_up(WindowMemory& memory, const Instance& active, bool all_waited) {
  const std::lock_guard lock(mutex_);
  std::erase_if(all_, [&](const Later& each) {
    const bool is_here = each.slot == active.slot();
    if (is_here && each.event == nullptr && !all_waited) return false;
    if (is_here && each.event != nullptr && active.driver().cuEventQuery(each.event) != CUDA_SUCCESS)
      return false;
    if (is_here && each.event != nullptr) active.driver().cuEventDestroy_v2(each.event);
    memory.free(each.address, active);
    return true;
  });
}

}  // namespace firebreak::virtual_driver
