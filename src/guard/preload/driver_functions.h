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
}
#pragma GCC visibility pop
