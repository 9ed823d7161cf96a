// SPDX-License-Identifier: Apache-2.0
/// Entry points: launches as CUDA 2 and 3 knew them, whose shape and parameters are set one by one.
#include <array>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <map>
#include <mutex>
#include <vector>

#include "softgpu/driver/entry.h"

using namespace firebreak::softgpu;
using namespace firebreak::softgpu::driver;

namespace {

/// No kernel has more.
constexpr std::size_t parameters_max_bytes = 4096;

struct NextLaunch {
  Dimensions block{1, 1, 1};
  std::uint32_t shared_bytes = 0;
  std::vector<std::byte> parameters;
};

/// Of all kernels, for ever: programs call until they have ended.
struct NextLaunches {
  std::mutex mutex;
  std::map<CUfunction, NextLaunch> of;  ///< guarded by the mutex
};

NextLaunches& next_launches() {
  static auto* const all = new NextLaunches;
  return *all;
}

template <class Set>
CUresult set_next(CUfunction handle, const Set& set) {
  return with_live_process([&](Process& process) {
    if (!process.functions().find(handle)) return CUDA_ERROR_INVALID_HANDLE;
    NextLaunches& all = next_launches();
    const std::lock_guard lock(all.mutex);
    return set(all.of[handle]);
  });
}

CUresult set_parameter(CUfunction handle, int offset, const void* value, std::size_t size_bytes) {
  return set_next(handle, [&](NextLaunch& next) {
    if (value == nullptr || offset < 0 || size_bytes > parameters_max_bytes) return CUDA_ERROR_INVALID_VALUE;
    const auto begin = static_cast<std::size_t>(offset);
    if (begin > parameters_max_bytes - size_bytes) return CUDA_ERROR_INVALID_VALUE;
    if (next.parameters.size() < begin + size_bytes) next.parameters.resize(begin + size_bytes);
    std::memcpy(next.parameters.data() + begin, value, size_bytes);
    return CUDA_SUCCESS;
  });
}

unsigned int extent(int length) { return length < 0 ? 0 : static_cast<unsigned int>(length); }

}  // namespace

extern "C" {

CUresult cuFuncSetBlockShape(CUfunction function, int x, int y, int z) {
  return set_next(function, [&](NextLaunch& next) {
    next.block = {extent(x), extent(y), extent(z)};
    return x < 1 || y < 1 || z < 1 ? CUDA_ERROR_INVALID_VALUE : CUDA_SUCCESS;
  });
}

CUresult cuFuncSetSharedSize(CUfunction function, unsigned int size_bytes) {
  return set_next(function, [&](NextLaunch& next) {
    next.shared_bytes = size_bytes;
    return CUDA_SUCCESS;
  });
}

CUresult cuParamSetSize(CUfunction function, unsigned int size_bytes) {
  return set_next(function, [&](NextLaunch& next) {
    if (size_bytes > parameters_max_bytes) return CUDA_ERROR_INVALID_VALUE;
    next.parameters.resize(size_bytes);
    return CUDA_SUCCESS;
  });
}

CUresult cuParamSeti(CUfunction function, int offset, unsigned int value) {
  return set_parameter(function, offset, &value, sizeof value);
}
CUresult cuParamSetf(CUfunction function, int offset, float value) {
  return set_parameter(function, offset, &value, sizeof value);
}
CUresult cuParamSetv(CUfunction function, int offset, void* pointer, unsigned int size_bytes) {
  return set_parameter(function, offset, pointer, size_bytes);
}

CUresult cuLaunchGridAsync(CUfunction function, int grid_width, int grid_height, CUstream stream) {
  NextLaunch launch;
  const CUresult known = set_next(function, [&](const NextLaunch& next) {
    launch = next;
    return CUDA_SUCCESS;
  });
  if (known != CUDA_SUCCESS) return known;
  std::size_t size_bytes = launch.parameters.size();
  std::array<void*, 5> extra{reinterpret_cast<void*>(CU_LAUNCH_PARAM_BUFFER_POINTER_AS_INT),
                             launch.parameters.data(),
                             reinterpret_cast<void*>(CU_LAUNCH_PARAM_BUFFER_SIZE_AS_INT), &size_bytes,
                             reinterpret_cast<void*>(CU_LAUNCH_PARAM_END_AS_INT)};
  return cuLaunchKernel(function, extent(grid_width), extent(grid_height), 1, launch.block.x, launch.block.y,
                        launch.block.z, launch.shared_bytes, stream, nullptr,
                        size_bytes == 0 ? nullptr : extra.data());
}

CUresult cuLaunchGrid(CUfunction function, int grid_width, int grid_height) {
  return cuLaunchGridAsync(function, grid_width, grid_height, nullptr);
}
CUresult cuLaunch(CUfunction function) { return cuLaunchGrid(function, 1, 1); }

}  // extern "C"
