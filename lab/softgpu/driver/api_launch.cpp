// SPDX-License-Identifier: Apache-2.0
/// Entry points: kernel launches.
#include <map>
#include <utility>

#include "shared/abi/cuda_launches.h"
#include "softgpu/driver/entry.h"
#include "softgpu/driver/launch.h"

using namespace firebreak::softgpu;
using namespace firebreak::softgpu::driver;

namespace {

struct LaunchShape {
  Dimensions grid;
  Dimensions block;
  std::uint32_t shared_bytes = 0;
};

using Attributes = std::map<int, CUlaunchAttributeValue>;

CUresult launch(CUfunction handle, const LaunchShape& shape, CUstream stream,
                const LaunchArguments& arguments, Attributes attributes = {}) {
  return with_stream(stream, [&](Process& process, Context& context, const std::shared_ptr<Stream>& target) {
    const auto function = process.functions().find(handle);
    if (!function || function->context != context.home()) return CUDA_ERROR_INVALID_HANDLE;
    auto prepared = prepare_launch(*function, shape.grid, shape.block, shape.shared_bytes, arguments);
    if (!prepared) return prepared.error();
    KernelNode node = node_of_launch(*function, handle, *prepared, arguments);
    node.attributes = std::move(attributes);
    Work work = work_of_launch(process, context, std::move(*prepared));
    if (target->is_captured()) work.node = std::make_shared<NodeContent>(NodeContent{std::move(node)});
    context.submit(target, std::move(work));
    return CUDA_SUCCESS;
  });
}

/// Attributes that change what a kernel does and that the software GPU cannot do are refused; hints are not.
CUresult check_attributes(const CUlaunchConfig& config) {
  for (unsigned int index = 0; index < config.numAttrs; ++index) {
    const CUlaunchAttribute& attribute = config.attrs[index];
    const auto& cluster = attribute.value.clusterDim;
    switch (attribute.id) {
      case CU_LAUNCH_ATTRIBUTE_CLUSTER_DIMENSION:
        if (std::uint64_t{cluster.x} * cluster.y * cluster.z > 1) return CUDA_ERROR_NOT_SUPPORTED;
        break;
      case CU_LAUNCH_ATTRIBUTE_PROGRAMMATIC_EVENT:
      case CU_LAUNCH_ATTRIBUTE_LAUNCH_COMPLETION_EVENT:
        return CUDA_ERROR_NOT_SUPPORTED;
      default:
        break;
    }
  }
  return CUDA_SUCCESS;
}

}  // namespace

extern "C" {

CUresult cuLaunchKernel(CUfunction function, unsigned int grid_dim_x, unsigned int grid_dim_y,
                        unsigned int grid_dim_z, unsigned int block_dim_x, unsigned int block_dim_y,
                        unsigned int block_dim_z, unsigned int shared_bytes, CUstream stream,
                        void** kernel_params, void** extra) {
  const LaunchShape shape{
      {grid_dim_x, grid_dim_y, grid_dim_z}, {block_dim_x, block_dim_y, block_dim_z}, shared_bytes};
  return launch(function, shape, stream, {kernel_params, extra});
}

CUresult cuLaunchKernelEx(const CUlaunchConfig* config, CUfunction function, void** kernel_params,
                          void** extra) {
  if (config == nullptr || (config->numAttrs != 0 && config->attrs == nullptr))
    return CUDA_ERROR_INVALID_VALUE;
  if (const CUresult checked = check_attributes(*config); checked != CUDA_SUCCESS) return checked;
  const LaunchShape shape{{config->gridDimX, config->gridDimY, config->gridDimZ},
                          {config->blockDimX, config->blockDimY, config->blockDimZ},
                          config->sharedMemBytes};
  Attributes attributes;
  for (unsigned int index = 0; index < config->numAttrs; ++index) {
    const CUlaunchAttribute& attribute = config->attrs[index];
    const bool is_of_node =
        attribute.id == CU_LAUNCH_ATTRIBUTE_COOPERATIVE || attribute.id == CU_LAUNCH_ATTRIBUTE_PRIORITY;
    if (is_of_node) attributes[attribute.id] = attribute.value;
  }
  return launch(function, shape, config->hStream, {kernel_params, extra}, std::move(attributes));
}

CUresult cuLaunchCooperativeKernel(CUfunction function, unsigned int grid_dim_x, unsigned int grid_dim_y,
                                   unsigned int grid_dim_z, unsigned int block_dim_x,
                                   unsigned int block_dim_y, unsigned int block_dim_z,
                                   unsigned int shared_bytes, CUstream stream, void** kernel_params) {
  const LaunchShape shape{
      {grid_dim_x, grid_dim_y, grid_dim_z}, {block_dim_x, block_dim_y, block_dim_z}, shared_bytes};
  CUlaunchAttributeValue cooperative{};
  cooperative.cooperative = 1;
  return launch(function, shape, stream, {kernel_params, nullptr},
                {{CU_LAUNCH_ATTRIBUTE_COOPERATIVE, cooperative}});
}

/// Each launch is on another device, and there is one. None may be in a default stream.
CUresult cuLaunchCooperativeKernelMultiDevice(CUDA_LAUNCH_PARAMS* launches, unsigned int device_count,
                                              unsigned int flags) {
  constexpr unsigned int known_flags = 0x3;
  if (launches == nullptr || device_count != 1 || (flags & ~known_flags) != 0)
    return CUDA_ERROR_INVALID_VALUE;
  const CUDA_LAUNCH_PARAMS& given = launches[0];
  if (reinterpret_cast<std::uintptr_t>(given.hStream) <= CU_STREAM_PER_THREAD_AS_INT)
    return CUDA_ERROR_INVALID_VALUE;
  return cuLaunchCooperativeKernel(given.function, given.gridDimX, given.gridDimY, given.gridDimZ,
                                   given.blockDimX, given.blockDimY, given.blockDimZ, given.sharedMemBytes,
                                   given.hStream, given.kernelParams);
}

}  // extern "C"
