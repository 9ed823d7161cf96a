// SPDX-License-Identifier: Apache-2.0
/// The driver's entry points as a table of function pointers, each under the driver's own name.
#pragma once

#include "abi/cuda_driver_functions.h"
#include "base/result.h"

namespace firebreak::cuda {

/// The CUDA version whose function types the table has; the driver is asked for exactly these.
inline constexpr int api_version = 12000;

/// None is null once filled. Streams given as null mean the legacy default stream.
struct EntryPoints {
  PFN_cuInit cuInit = nullptr;
  PFN_cuDriverGetVersion cuDriverGetVersion = nullptr;
  PFN_cuGetErrorName cuGetErrorName = nullptr;
  PFN_cuGetErrorString cuGetErrorString = nullptr;

  // Devices
  PFN_cuDeviceGet cuDeviceGet = nullptr;
  PFN_cuDeviceGetCount cuDeviceGetCount = nullptr;
  PFN_cuDeviceGetName cuDeviceGetName = nullptr;
  PFN_cuDeviceGetUuid_v2 cuDeviceGetUuid = nullptr;
  PFN_cuDeviceTotalMem_v2 cuDeviceTotalMem = nullptr;
  PFN_cuDeviceGetAttribute cuDeviceGetAttribute = nullptr;
  PFN_cuDeviceGetPCIBusId cuDeviceGetPCIBusId = nullptr;

  // Contexts
  PFN_cuCtxCreate_v3 cuCtxCreate = nullptr;
  PFN_cuCtxDestroy_v2 cuCtxDestroy = nullptr;
  PFN_cuCtxSetCurrent cuCtxSetCurrent = nullptr;
  PFN_cuCtxGetCurrent cuCtxGetCurrent = nullptr;
  PFN_cuCtxPushCurrent_v2 cuCtxPushCurrent = nullptr;
  PFN_cuCtxPopCurrent_v2 cuCtxPopCurrent = nullptr;
  PFN_cuCtxGetDevice cuCtxGetDevice = nullptr;
  PFN_cuCtxSynchronize cuCtxSynchronize = nullptr;
  PFN_cuCtxSetLimit cuCtxSetLimit = nullptr;
  PFN_cuCtxGetLimit cuCtxGetLimit = nullptr;
  PFN_cuCtxGetStreamPriorityRange cuCtxGetStreamPriorityRange = nullptr;
  PFN_cuDevicePrimaryCtxRetain cuDevicePrimaryCtxRetain = nullptr;
  PFN_cuDevicePrimaryCtxRelease_v2 cuDevicePrimaryCtxRelease = nullptr;

  // Modules and functions
  PFN_cuModuleLoadDataEx cuModuleLoadDataEx = nullptr;
  PFN_cuModuleUnload cuModuleUnload = nullptr;
  PFN_cuModuleGetFunction cuModuleGetFunction = nullptr;
  PFN_cuModuleGetGlobal_v2 cuModuleGetGlobal = nullptr;
  PFN_cuFuncGetAttribute cuFuncGetAttribute = nullptr;
  PFN_cuFuncSetAttribute cuFuncSetAttribute = nullptr;
  PFN_cuLaunchKernel cuLaunchKernel = nullptr;

  // Streams and events
  PFN_cuStreamCreateWithPriority cuStreamCreateWithPriority = nullptr;
  PFN_cuStreamDestroy_v2 cuStreamDestroy = nullptr;
  PFN_cuStreamQuery cuStreamQuery = nullptr;
  PFN_cuStreamSynchronize cuStreamSynchronize = nullptr;
  PFN_cuStreamWaitEvent cuStreamWaitEvent = nullptr;
  PFN_cuStreamGetCtx cuStreamGetCtx = nullptr;
  PFN_cuStreamIsCapturing cuStreamIsCapturing = nullptr;
  PFN_cuStreamWaitValue32_v2 cuStreamWaitValue32 = nullptr;
  PFN_cuStreamWriteValue32_v2 cuStreamWriteValue32 = nullptr;
  PFN_cuStreamWaitValue64_v2 cuStreamWaitValue64 = nullptr;
  PFN_cuStreamWriteValue64_v2 cuStreamWriteValue64 = nullptr;
  PFN_cuEventCreate cuEventCreate = nullptr;
  PFN_cuEventDestroy_v2 cuEventDestroy = nullptr;
  PFN_cuEventRecord cuEventRecord = nullptr;
  PFN_cuEventQuery cuEventQuery = nullptr;
  PFN_cuEventSynchronize cuEventSynchronize = nullptr;
  PFN_cuEventElapsedTime cuEventElapsedTime = nullptr;

  // Memory
  PFN_cuMemGetInfo_v2 cuMemGetInfo = nullptr;
  PFN_cuMemAlloc_v2 cuMemAlloc = nullptr;
  PFN_cuMemFree_v2 cuMemFree = nullptr;
  PFN_cuMemHostAlloc cuMemHostAlloc = nullptr;
  PFN_cuMemFreeHost cuMemFreeHost = nullptr;
  PFN_cuMemHostGetDevicePointer_v2 cuMemHostGetDevicePointer = nullptr;
  PFN_cuMemHostRegister_v2 cuMemHostRegister = nullptr;
  PFN_cuMemHostUnregister cuMemHostUnregister = nullptr;
  PFN_cuPointerGetAttribute cuPointerGetAttribute = nullptr;

  // Copies and fills
  PFN_cuMemcpyHtoD_v2 cuMemcpyHtoD = nullptr;
  PFN_cuMemcpyDtoH_v2 cuMemcpyDtoH = nullptr;
  PFN_cuMemcpyDtoD_v2 cuMemcpyDtoD = nullptr;
  PFN_cuMemcpyHtoDAsync_v2 cuMemcpyHtoDAsync = nullptr;
  PFN_cuMemcpyDtoHAsync_v2 cuMemcpyDtoHAsync = nullptr;
  PFN_cuMemcpyDtoDAsync_v2 cuMemcpyDtoDAsync = nullptr;
  PFN_cuMemcpy2DAsync_v2 cuMemcpy2DAsync = nullptr;
  PFN_cuMemsetD8_v2 cuMemsetD8 = nullptr;
  PFN_cuMemsetD32_v2 cuMemsetD32 = nullptr;
  PFN_cuMemsetD8Async cuMemsetD8Async = nullptr;
  PFN_cuMemsetD32Async cuMemsetD32Async = nullptr;

  // Virtual memory
  PFN_cuMemAddressReserve cuMemAddressReserve = nullptr;
  PFN_cuMemAddressFree cuMemAddressFree = nullptr;
  PFN_cuMemCreate cuMemCreate = nullptr;
  PFN_cuMemRelease cuMemRelease = nullptr;
  PFN_cuMemMap cuMemMap = nullptr;
  PFN_cuMemUnmap cuMemUnmap = nullptr;
  PFN_cuMemSetAccess cuMemSetAccess = nullptr;
  PFN_cuMemExportToShareableHandle cuMemExportToShareableHandle = nullptr;
  PFN_cuMemImportFromShareableHandle cuMemImportFromShareableHandle = nullptr;
  PFN_cuMemGetAllocationGranularity cuMemGetAllocationGranularity = nullptr;
  PFN_cuMemGetAllocationPropertiesFromHandle cuMemGetAllocationPropertiesFromHandle = nullptr;
  PFN_cuMemRetainAllocationHandle cuMemRetainAllocationHandle = nullptr;
};

/// Fills the table through the library's own resolver. Unsupported names the first entry point that is
/// missing.
Result<EntryPoints> resolve_entry_points(PFN_cuGetProcAddress_v2 get_proc_address);

}  // namespace firebreak::cuda
