// SPDX-License-Identifier: Apache-2.0
/// The launching functions in the driver's place: they count, and ask the driver.
#include <cstdint>

#include "guard/preload/counting.h"
#include "guard/preload/driver_functions.h"
#include "guard/preload/real_function.h"

using firebreak::abi::GuardLaunches;
using firebreak::guard::find_kernel;
using firebreak::guard::Launch;
using firebreak::guard::name_of;
using firebreak::guard::RealFunction;
using firebreak::guard::slot_of;

namespace {

template <bool per_thread, class Function, class... Arguments>
CUresult launch(RealFunction<Function>& real, CUfunction kernel, CUstream stream, Arguments... arguments) {
  const Function function = real.get();
  if (function == nullptr) return CUDA_ERROR_NOT_FOUND;
  GuardLaunches* const slot = slot_of<per_thread>(stream);
  const bool has_name = slot != nullptr && kernel != nullptr;
  const Launch counted(slot, has_name ? name_of(kernel, &find_kernel) : std::uint16_t{0});
  return function(arguments...);
}

constinit RealFunction<PFN_cuLaunchKernel> launch_kernel{"cuLaunchKernel"};
constinit RealFunction<PFN_cuLaunchKernel> launch_kernel_ptsz{"cuLaunchKernel_ptsz"};
constinit RealFunction<PFN_cuLaunchKernelEx> launch_kernel_ex{"cuLaunchKernelEx"};
constinit RealFunction<PFN_cuLaunchKernelEx> launch_kernel_ex_ptsz{"cuLaunchKernelEx_ptsz"};
constinit RealFunction<PFN_cuLaunchCooperativeKernel> launch_cooperative{"cuLaunchCooperativeKernel"};
constinit RealFunction<PFN_cuLaunchCooperativeKernel> launch_cooperative_ptsz{
    "cuLaunchCooperativeKernel_ptsz"};
constinit RealFunction<PFN_cuGraphLaunch> launch_graph{"cuGraphLaunch"};
constinit RealFunction<PFN_cuGraphLaunch> launch_graph_ptsz{"cuGraphLaunch_ptsz"};

CUstream stream_of(const CUlaunchConfig* config) { return config == nullptr ? nullptr : config->hStream; }

}  // namespace

CUresult cuLaunchKernel(CUfunction function, unsigned int grid_x, unsigned int grid_y, unsigned int grid_z,
                        unsigned int block_x, unsigned int block_y, unsigned int block_z,
                        unsigned int shared_bytes, CUstream stream, void** parameters, void** extra) {
  return launch<false>(launch_kernel, function, stream, function, grid_x, grid_y, grid_z, block_x, block_y,
                       block_z, shared_bytes, stream, parameters, extra);
}

CUresult cuLaunchKernel_ptsz(CUfunction function, unsigned int grid_x, unsigned int grid_y,
                             unsigned int grid_z, unsigned int block_x, unsigned int block_y,
                             unsigned int block_z, unsigned int shared_bytes, CUstream stream,
                             void** parameters, void** extra) {
  return launch<true>(launch_kernel_ptsz, function, stream, function, grid_x, grid_y, grid_z, block_x,
                      block_y, block_z, shared_bytes, stream, parameters, extra);
}

CUresult cuLaunchKernelEx(const CUlaunchConfig* config, CUfunction function, void** parameters,
                          void** extra) {
  return launch<false>(launch_kernel_ex, function, stream_of(config), config, function, parameters, extra);
}

CUresult cuLaunchKernelEx_ptsz(const CUlaunchConfig* config, CUfunction function, void** parameters,
                               void** extra) {
  return launch<true>(launch_kernel_ex_ptsz, function, stream_of(config), config, function, parameters,
                      extra);
}

CUresult cuLaunchCooperativeKernel(CUfunction function, unsigned int grid_x, unsigned int grid_y,
                                   unsigned int grid_z, unsigned int block_x, unsigned int block_y,
                                   unsigned int block_z, unsigned int shared_bytes, CUstream stream,
                                   void** parameters) {
  return launch<false>(launch_cooperative, function, stream, function, grid_x, grid_y, grid_z, block_x,
                       block_y, block_z, shared_bytes, stream, parameters);
}

CUresult cuLaunchCooperativeKernel_ptsz(CUfunction function, unsigned int grid_x, unsigned int grid_y,
                                        unsigned int grid_z, unsigned int block_x, unsigned int block_y,
                                        unsigned int block_z, unsigned int shared_bytes, CUstream stream,
                                        void** parameters) {
  return launch<true>(launch_cooperative_ptsz, function, stream, function, grid_x, grid_y, grid_z, block_x,
                      block_y, block_z, shared_bytes, stream, parameters);
}

CUresult cuGraphLaunch(CUgraphExec graph, CUstream stream) {
  return launch<false>(launch_graph, nullptr, stream, graph, stream);
}

CUresult cuGraphLaunch_ptsz(CUgraphExec graph, CUstream stream) {
  return launch<true>(launch_graph_ptsz, nullptr, stream, graph, stream);
}
