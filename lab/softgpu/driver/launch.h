// SPDX-License-Identifier: Apache-2.0
/// The way from the arguments of a launch to work on a stream; occupancy.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>

#include "shared/abi/cuda_driver.h"
#include "softgpu/driver/answer.h"
#include "softgpu/driver/context.h"
#include "softgpu/driver/graph_node.h"
#include "softgpu/driver/module.h"
#include "softgpu/driver/process.h"

namespace firebreak::softgpu::driver {

/// The two ways to give parameters: one pointer a parameter, or a packed buffer.
struct LaunchArguments {
  void** kernel_params = nullptr;
  void** extra = nullptr;
};

/// Everything that is checked when the launch is called. INVALID_VALUE for dimensions or shared memory that
/// the device or the kernel does not allow, and for parameters that are missing.
Answer<Launch> prepare_launch(const Function& function, Dimensions grid, Dimensions block,
                              std::uint32_t dynamic_shared_bytes, const LaunchArguments& arguments);

/// Work of that kernel; its fault, if any, comes when it is done.
Work work_of_launch(Process& process, Context& context, Launch launch);

/// Returns what a graph keeps of such a launch.
KernelNode node_of_launch(const Function& function, CUfunction handle, const Launch& launch,
                          const LaunchArguments& arguments);

/// Blocks of that size which one multiprocessor can hold at the same time.
int active_blocks(const Function& function, int block_size, std::size_t dynamic_shared_bytes);

struct BestBlock {
  int threads = 0;
  int blocks_per_multiprocessor = 0;
};
/// The block size that fills a multiprocessor best. `limit` 0: none.
BestBlock best_block(const Function& function, CUoccupancyB2DSize shared_bytes_of, std::size_t shared_bytes,
                     int limit);

}  // namespace firebreak::softgpu::driver
