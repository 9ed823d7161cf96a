// SPDX-License-Identifier: Apache-2.0
/// The driver's functions that the guard stands in for, as the driver declares them.
#pragma once

#include "abi/cuda_driver_functions.h"

#pragma GCC visibility push(default)
extern "C" {
CUresult cuGetProcAddress(const char* symbol, void** function, int cuda_version, std::uint64_t flags);
CUresult cuGetProcAddress_v2(const char* symbol, void** function, int cuda_version, std::uint64_t flags,
                             CUdriverProcAddressQueryResult* found);
CUresult cuDevicePrimaryCtxRetain(CUcontext* context, CUdevice device);
CUresult cuDevicePrimaryCtxRelease_v2(CUdevice device);
CUresult cuDevicePrimaryCtxReset_v2(CUdevice device);
CUresult cuCtxCreate_v2(CUcontext* context, unsigned int flags, CUdevice device);
CUresult cuCtxCreate_v3(CUcontext* context, CUexecAffinityParam* params, int param_count, unsigned int flags,
                        CUdevice device);
CUresult cuCtxCreate_v4(CUcontext* context, CUctxCreateParams* params, unsigned int flags, CUdevice device);
CUresult cuCtxDestroy_v2(CUcontext context);
CUresult cuCtxEnablePeerAccess(CUcontext peer, unsigned int flags);
CUresult cuMemAlloc_v2(CUdeviceptr* pointer, std::size_t size_bytes);
CUresult cuMemAllocPitch_v2(CUdeviceptr* pointer, std::size_t* pitch_bytes, std::size_t width_bytes,
                            std::size_t height, unsigned int element_bytes);
CUresult cuMemFree_v2(CUdeviceptr pointer);
CUresult cuMemAllocManaged(CUdeviceptr* pointer, std::size_t size_bytes, unsigned int flags);
CUresult cuMemAllocAsync(CUdeviceptr* pointer, std::size_t size_bytes, CUstream stream);
CUresult cuMemAllocAsync_ptsz(CUdeviceptr* pointer, std::size_t size_bytes, CUstream stream);
CUresult cuMemAllocFromPoolAsync(CUdeviceptr* pointer, std::size_t size_bytes, void* pool, CUstream stream);
CUresult cuMemAllocFromPoolAsync_ptsz(CUdeviceptr* pointer, std::size_t size_bytes, void* pool,
                                      CUstream stream);
CUresult cuMemHostAlloc(void** host, std::size_t size_bytes, unsigned int flags);
CUresult cuMemAllocHost_v2(void** host, std::size_t size_bytes);
CUresult cuMemFreeHost(void* host);
CUresult cuMemFreeAsync(CUdeviceptr pointer, CUstream stream);
CUresult cuMemFreeAsync_ptsz(CUdeviceptr pointer, CUstream stream);
CUresult cuIpcGetMemHandle(CUipcMemHandle* handle, CUdeviceptr pointer);
CUresult cuMemGetAddressRange_v2(CUdeviceptr* base, std::size_t* size_bytes, CUdeviceptr pointer);
CUresult cuPointerGetAttribute(void* data, CUpointer_attribute attribute, CUdeviceptr pointer);
CUresult cuPointerGetAttributes(unsigned int count, CUpointer_attribute* attributes, void** data,
                                CUdeviceptr pointer);
CUresult cuMemAddressReserve(CUdeviceptr* pointer, std::size_t size_bytes, std::size_t alignment_bytes,
                             CUdeviceptr hint, unsigned long long flags);
CUresult cuMemAddressFree(CUdeviceptr pointer, std::size_t size_bytes);
CUresult cuMemMap(CUdeviceptr pointer, std::size_t size_bytes, std::size_t offset_bytes,
                  CUmemGenericAllocationHandle handle, unsigned long long flags);
CUresult cuMemUnmap(CUdeviceptr pointer, std::size_t size_bytes);
CUresult cuMemSetAccess(CUdeviceptr pointer, std::size_t size_bytes, const CUmemAccessDesc* rights,
                        std::size_t count);

// Launches; those with _ptsz mean the calling thread's own default stream where they are given none.
CUresult cuLaunchKernel(CUfunction function, unsigned int grid_x, unsigned int grid_y, unsigned int grid_z,
                        unsigned int block_x, unsigned int block_y, unsigned int block_z,
                        unsigned int shared_bytes, CUstream stream, void** parameters, void** extra);
CUresult cuLaunchKernel_ptsz(CUfunction function, unsigned int grid_x, unsigned int grid_y,
                             unsigned int grid_z, unsigned int block_x, unsigned int block_y,
                             unsigned int block_z, unsigned int shared_bytes, CUstream stream,
                             void** parameters, void** extra);
CUresult cuLaunchKernelEx(const CUlaunchConfig* config, CUfunction function, void** parameters, void** extra);
CUresult cuLaunchKernelEx_ptsz(const CUlaunchConfig* config, CUfunction function, void** parameters,
                               void** extra);
CUresult cuLaunchCooperativeKernel(CUfunction function, unsigned int grid_x, unsigned int grid_y,
                                   unsigned int grid_z, unsigned int block_x, unsigned int block_y,
                                   unsigned int block_z, unsigned int shared_bytes, CUstream stream,
                                   void** parameters);
CUresult cuLaunchCooperativeKernel_ptsz(CUfunction function, unsigned int grid_x, unsigned int grid_y,
                                        unsigned int grid_z, unsigned int block_x, unsigned int block_y,
                                        unsigned int block_z, unsigned int shared_bytes, CUstream stream,
                                        void** parameters);
CUresult cuGraphLaunch(CUgraphExec graph, CUstream stream);
CUresult cuGraphLaunch_ptsz(CUgraphExec graph, CUstream stream);
// NVIDIA's oldest ones, which are not counted.
CUresult cuLaunch(CUfunction function);
CUresult cuLaunchGrid(CUfunction function, int grid_x, int grid_y);
CUresult cuLaunchGridAsync(CUfunction function, int grid_x, int grid_y, CUstream stream);
CUresult cuLaunchCooperativeKernelMultiDevice(void* launches, unsigned int count, unsigned int flags);

// What words behind launches must know of.
CUresult cuStreamCreate(CUstream* stream, unsigned int flags);
CUresult cuStreamCreateWithPriority(CUstream* stream, unsigned int flags, int priority);
CUresult cuStreamDestroy_v2(CUstream stream);
CUresult cuStreamBeginCapture_v2(CUstream stream, CUstreamCaptureMode mode);
CUresult cuStreamBeginCapture_v2_ptsz(CUstream stream, CUstreamCaptureMode mode);
CUresult cuStreamBeginCaptureToGraph(CUstream stream, CUgraph graph, const CUgraphNode* dependencies,
                                     const CUgraphEdgeData* edges, std::size_t count,
                                     CUstreamCaptureMode mode);
CUresult cuStreamBeginCaptureToGraph_ptsz(CUstream stream, CUgraph graph, const CUgraphNode* dependencies,
                                          const CUgraphEdgeData* edges, std::size_t count,
                                          CUstreamCaptureMode mode);
CUresult cuStreamEndCapture(CUstream stream, CUgraph* graph);
CUresult cuStreamEndCapture_ptsz(CUstream stream, CUgraph* graph);
CUresult cuModuleUnload(CUmodule module);
CUresult cuLibraryUnload(CUlibrary library);
}
#pragma GCC visibility pop
