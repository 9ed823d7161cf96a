// SPDX-License-Identifier: Apache-2.0
// Compiled only where a CUDA toolkit is installed: every function type of abi/cuda_driver_functions.h must
// take and answer what the toolkit's declaration does. Types count as equal by size and shape, since ours are
// types of our own.
#include <cstddef>
#include <cstdint>
#include <type_traits>

namespace ours {
#include "abi/cuda_driver_functions.h"
}  // namespace ours

#include <cuda.h>

namespace {

template <class Own, class Toolkits>
consteval bool same_type();

template <class Own, class Toolkits>
struct SameFunction : std::false_type {};

template <class OwnResult, class... Own, class Result, class... Toolkits>
requires(sizeof...(Own) ==
         sizeof...(Toolkits)) struct SameFunction<OwnResult (*)(Own...), Result (*)(Toolkits...)>
    : std::bool_constant<same_type<OwnResult, Result>() && (same_type<Own, Toolkits>() && ...)> {
};

template <class Type>
concept Opaque = !requires {
  sizeof(Type);
};

template <class Own, class Toolkits>
consteval bool same_pointee() {
  if (std::is_const_v<Own> != std::is_const_v<Toolkits>) return false;
  if constexpr (std::is_function_v<Own>) {
    return SameFunction<Own*, Toolkits*>::value;
  } else if constexpr (std::is_void_v<Own> || std::is_void_v<Toolkits>) {
    return std::is_void_v<Own> && std::is_void_v<Toolkits>;
  } else if constexpr (Opaque<Own> || Opaque<Toolkits>) {
    return Opaque<Own> && Opaque<Toolkits>;
  } else {
    return same_type<std::remove_const_t<Own>, std::remove_const_t<Toolkits>>();
  }
}

template <class Own, class Toolkits>
consteval bool same_type() {
  if constexpr (std::is_pointer_v<Own> && std::is_pointer_v<Toolkits>) {
    return same_pointee<std::remove_pointer_t<Own>, std::remove_pointer_t<Toolkits>>();
  } else if constexpr (std::is_arithmetic_v<Own> || std::is_void_v<Own>) {
    return std::is_same_v<Own, Toolkits>;
  } else {
    return std::is_enum_v<Own> == std::is_enum_v<Toolkits> &&
           std::is_class_v<Own> == std::is_class_v<Toolkits> && sizeof(Own) == sizeof(Toolkits);
  }
}

template <class Own, class Toolkits>
consteval bool same() {
  return SameFunction<Own, Toolkits>::value;
}

static_assert(same<ours::PFN_cuInit, decltype(&cuInit)>());
static_assert(same<ours::PFN_cuDriverGetVersion, decltype(&cuDriverGetVersion)>());
static_assert(same<ours::PFN_cuGetErrorName, decltype(&cuGetErrorName)>());
static_assert(same<ours::PFN_cuGetErrorString, decltype(&cuGetErrorString)>());
static_assert(same<ours::PFN_cuGetProcAddress_v2, decltype(&cuGetProcAddress_v2)>());
static_assert(same<ours::PFN_cuDeviceGet, decltype(&cuDeviceGet)>());
static_assert(same<ours::PFN_cuDeviceGetCount, decltype(&cuDeviceGetCount)>());
static_assert(same<ours::PFN_cuDeviceGetName, decltype(&cuDeviceGetName)>());
static_assert(same<ours::PFN_cuDeviceGetUuid_v2, decltype(&cuDeviceGetUuid_v2)>());
static_assert(same<ours::PFN_cuDeviceTotalMem_v2, decltype(&cuDeviceTotalMem_v2)>());
static_assert(same<ours::PFN_cuDeviceGetAttribute, decltype(&cuDeviceGetAttribute)>());
static_assert(same<ours::PFN_cuDeviceGetPCIBusId, decltype(&cuDeviceGetPCIBusId)>());
static_assert(same<ours::PFN_cuDeviceGetByPCIBusId, decltype(&cuDeviceGetByPCIBusId)>());
static_assert(same<ours::PFN_cuDeviceCanAccessPeer, decltype(&cuDeviceCanAccessPeer)>());
static_assert(same<ours::PFN_cuDevicePrimaryCtxRetain, decltype(&cuDevicePrimaryCtxRetain)>());
static_assert(same<ours::PFN_cuDevicePrimaryCtxRelease_v2, decltype(&cuDevicePrimaryCtxRelease_v2)>());
static_assert(same<ours::PFN_cuDevicePrimaryCtxSetFlags_v2, decltype(&cuDevicePrimaryCtxSetFlags_v2)>());
static_assert(same<ours::PFN_cuDevicePrimaryCtxGetState, decltype(&cuDevicePrimaryCtxGetState)>());
static_assert(same<ours::PFN_cuDevicePrimaryCtxReset_v2, decltype(&cuDevicePrimaryCtxReset_v2)>());
static_assert(same<ours::PFN_cuCtxCreate_v4, decltype(&cuCtxCreate_v4)>());
static_assert(same<ours::PFN_cuCtxDestroy_v2, decltype(&cuCtxDestroy_v2)>());
static_assert(same<ours::PFN_cuCtxPushCurrent_v2, decltype(&cuCtxPushCurrent_v2)>());
static_assert(same<ours::PFN_cuCtxPopCurrent_v2, decltype(&cuCtxPopCurrent_v2)>());
static_assert(same<ours::PFN_cuCtxSetCurrent, decltype(&cuCtxSetCurrent)>());
static_assert(same<ours::PFN_cuCtxGetCurrent, decltype(&cuCtxGetCurrent)>());
static_assert(same<ours::PFN_cuCtxGetDevice, decltype(&cuCtxGetDevice)>());
static_assert(same<ours::PFN_cuCtxGetFlags, decltype(&cuCtxGetFlags)>());
static_assert(same<ours::PFN_cuCtxGetId, decltype(&cuCtxGetId)>());
static_assert(same<ours::PFN_cuCtxGetApiVersion, decltype(&cuCtxGetApiVersion)>());
static_assert(same<ours::PFN_cuCtxGetExecAffinity, decltype(&cuCtxGetExecAffinity)>());
static_assert(same<ours::PFN_cuCtxSynchronize, decltype(&cuCtxSynchronize)>());
static_assert(same<ours::PFN_cuCtxSetLimit, decltype(&cuCtxSetLimit)>());
static_assert(same<ours::PFN_cuCtxGetLimit, decltype(&cuCtxGetLimit)>());
static_assert(same<ours::PFN_cuCtxGetStreamPriorityRange, decltype(&cuCtxGetStreamPriorityRange)>());
static_assert(same<ours::PFN_cuModuleLoadData, decltype(&cuModuleLoadData)>());
static_assert(same<ours::PFN_cuModuleLoadDataEx, decltype(&cuModuleLoadDataEx)>());
static_assert(same<ours::PFN_cuModuleUnload, decltype(&cuModuleUnload)>());
static_assert(same<ours::PFN_cuModuleGetFunction, decltype(&cuModuleGetFunction)>());
static_assert(same<ours::PFN_cuModuleGetGlobal_v2, decltype(&cuModuleGetGlobal_v2)>());
static_assert(same<ours::PFN_cuModuleGetLoadingMode, decltype(&cuModuleGetLoadingMode)>());
static_assert(same<ours::PFN_cuFuncGetAttribute, decltype(&cuFuncGetAttribute)>());
static_assert(same<ours::PFN_cuFuncSetAttribute, decltype(&cuFuncSetAttribute)>());
static_assert(same<ours::PFN_cuFuncSetCacheConfig, decltype(&cuFuncSetCacheConfig)>());
static_assert(same<ours::PFN_cuFuncGetModule, decltype(&cuFuncGetModule)>());
static_assert(same<ours::PFN_cuLaunchKernel, decltype(&cuLaunchKernel)>());
static_assert(same<ours::PFN_cuLaunchKernelEx, decltype(&cuLaunchKernelEx)>());
static_assert(same<ours::PFN_cuLaunchHostFunc, decltype(&cuLaunchHostFunc)>());
static_assert(same<ours::PFN_cuOccupancyMaxActiveBlocksPerMultiprocessor,
                   decltype(&cuOccupancyMaxActiveBlocksPerMultiprocessor)>());
static_assert(
    same<ours::PFN_cuOccupancyMaxPotentialBlockSize, decltype(&cuOccupancyMaxPotentialBlockSize)>());
static_assert(same<ours::PFN_cuStreamCreate, decltype(&cuStreamCreate)>());
static_assert(same<ours::PFN_cuStreamCreateWithPriority, decltype(&cuStreamCreateWithPriority)>());
static_assert(same<ours::PFN_cuStreamDestroy_v2, decltype(&cuStreamDestroy_v2)>());
static_assert(same<ours::PFN_cuStreamQuery, decltype(&cuStreamQuery)>());
static_assert(same<ours::PFN_cuStreamSynchronize, decltype(&cuStreamSynchronize)>());
static_assert(same<ours::PFN_cuStreamWaitEvent, decltype(&cuStreamWaitEvent)>());
static_assert(same<ours::PFN_cuStreamGetFlags, decltype(&cuStreamGetFlags)>());
static_assert(same<ours::PFN_cuStreamGetPriority, decltype(&cuStreamGetPriority)>());
static_assert(same<ours::PFN_cuStreamGetCtx, decltype(&cuStreamGetCtx)>());
static_assert(same<ours::PFN_cuStreamIsCapturing, decltype(&cuStreamIsCapturing)>());
static_assert(same<ours::PFN_cuFuncGetName, decltype(&cuFuncGetName)>());
static_assert(same<ours::PFN_cuLibraryUnload, decltype(&cuLibraryUnload)>());
static_assert(same<ours::PFN_cuLaunchCooperativeKernel, decltype(&cuLaunchCooperativeKernel)>());
static_assert(same<ours::PFN_cuGraphLaunch, decltype(&cuGraphLaunch)>());
static_assert(same<ours::PFN_cuGraphInstantiateWithFlags, decltype(&cuGraphInstantiateWithFlags)>());
static_assert(same<ours::PFN_cuGraphGetNodes, decltype(&cuGraphGetNodes)>());
static_assert(same<ours::PFN_cuGraphDestroy, decltype(&cuGraphDestroy)>());
static_assert(same<ours::PFN_cuGraphExecDestroy, decltype(&cuGraphExecDestroy)>());
static_assert(same<ours::PFN_cuStreamBeginCapture_v2, decltype(&cuStreamBeginCapture)>());
static_assert(same<ours::PFN_cuStreamBeginCaptureToGraph, decltype(&cuStreamBeginCaptureToGraph)>());
static_assert(same<ours::PFN_cuStreamEndCapture, decltype(&cuStreamEndCapture)>());
static_assert(same<ours::PFN_cuStreamWaitValue32_v2, decltype(&cuStreamWaitValue32_v2)>());
static_assert(same<ours::PFN_cuStreamWriteValue32_v2, decltype(&cuStreamWriteValue32_v2)>());
static_assert(same<ours::PFN_cuStreamWaitValue64_v2, decltype(&cuStreamWaitValue64_v2)>());
static_assert(same<ours::PFN_cuStreamWriteValue64_v2, decltype(&cuStreamWriteValue64_v2)>());
static_assert(same<ours::PFN_cuEventCreate, decltype(&cuEventCreate)>());
static_assert(same<ours::PFN_cuEventRecord, decltype(&cuEventRecord)>());
static_assert(same<ours::PFN_cuEventRecordWithFlags, decltype(&cuEventRecordWithFlags)>());
static_assert(same<ours::PFN_cuEventQuery, decltype(&cuEventQuery)>());
static_assert(same<ours::PFN_cuEventSynchronize, decltype(&cuEventSynchronize)>());
static_assert(same<ours::PFN_cuEventDestroy_v2, decltype(&cuEventDestroy_v2)>());
static_assert(same<ours::PFN_cuMemGetInfo_v2, decltype(&cuMemGetInfo_v2)>());
static_assert(same<ours::PFN_cuMemAlloc_v2, decltype(&cuMemAlloc_v2)>());
static_assert(same<ours::PFN_cuMemAllocPitch_v2, decltype(&cuMemAllocPitch_v2)>());
static_assert(same<ours::PFN_cuMemFree_v2, decltype(&cuMemFree_v2)>());
static_assert(same<ours::PFN_cuIpcGetMemHandle, decltype(&cuIpcGetMemHandle)>());
static_assert(same<ours::PFN_cuIpcOpenMemHandle_v2, decltype(&cuIpcOpenMemHandle_v2)>());
static_assert(same<ours::PFN_cuIpcCloseMemHandle, decltype(&cuIpcCloseMemHandle)>());
static_assert(same<ours::PFN_cuMemGetAddressRange_v2, decltype(&cuMemGetAddressRange_v2)>());
static_assert(same<ours::PFN_cuMemAllocHost_v2, decltype(&cuMemAllocHost_v2)>());
static_assert(same<ours::PFN_cuMemHostAlloc, decltype(&cuMemHostAlloc)>());
static_assert(same<ours::PFN_cuMemFreeHost, decltype(&cuMemFreeHost)>());
static_assert(same<ours::PFN_cuMemHostGetDevicePointer_v2, decltype(&cuMemHostGetDevicePointer_v2)>());
static_assert(same<ours::PFN_cuMemHostGetFlags, decltype(&cuMemHostGetFlags)>());
static_assert(same<ours::PFN_cuMemHostRegister_v2, decltype(&cuMemHostRegister_v2)>());
static_assert(same<ours::PFN_cuMemHostUnregister, decltype(&cuMemHostUnregister)>());
static_assert(same<ours::PFN_cuMemAllocManaged, decltype(&cuMemAllocManaged)>());
static_assert(same<ours::PFN_cuPointerGetAttribute, decltype(&cuPointerGetAttribute)>());
static_assert(same<ours::PFN_cuPointerGetAttributes, decltype(&cuPointerGetAttributes)>());
static_assert(same<ours::PFN_cuMemcpy, decltype(&cuMemcpy)>());
static_assert(same<ours::PFN_cuMemcpyAsync, decltype(&cuMemcpyAsync)>());
static_assert(same<ours::PFN_cuMemcpyHtoD_v2, decltype(&cuMemcpyHtoD_v2)>());
static_assert(same<ours::PFN_cuMemcpyDtoH_v2, decltype(&cuMemcpyDtoH_v2)>());
static_assert(same<ours::PFN_cuMemcpyDtoD_v2, decltype(&cuMemcpyDtoD_v2)>());
static_assert(same<ours::PFN_cuMemcpyHtoDAsync_v2, decltype(&cuMemcpyHtoDAsync_v2)>());
static_assert(same<ours::PFN_cuMemcpyDtoHAsync_v2, decltype(&cuMemcpyDtoHAsync_v2)>());
static_assert(same<ours::PFN_cuMemcpyDtoDAsync_v2, decltype(&cuMemcpyDtoDAsync_v2)>());
static_assert(same<ours::PFN_cuMemcpy2D_v2, decltype(&cuMemcpy2D_v2)>());
static_assert(same<ours::PFN_cuMemcpy2DAsync_v2, decltype(&cuMemcpy2DAsync_v2)>());
static_assert(same<ours::PFN_cuMemsetD8_v2, decltype(&cuMemsetD8_v2)>());
static_assert(same<ours::PFN_cuMemsetD16_v2, decltype(&cuMemsetD16_v2)>());
static_assert(same<ours::PFN_cuMemsetD32_v2, decltype(&cuMemsetD32_v2)>());
static_assert(same<ours::PFN_cuMemsetD8Async, decltype(&cuMemsetD8Async)>());
static_assert(same<ours::PFN_cuMemsetD16Async, decltype(&cuMemsetD16Async)>());
static_assert(same<ours::PFN_cuMemsetD32Async, decltype(&cuMemsetD32Async)>());
static_assert(same<ours::PFN_cuMemAddressReserve, decltype(&cuMemAddressReserve)>());
static_assert(same<ours::PFN_cuMemAddressFree, decltype(&cuMemAddressFree)>());
static_assert(same<ours::PFN_cuMemCreate, decltype(&cuMemCreate)>());
static_assert(same<ours::PFN_cuMemRelease, decltype(&cuMemRelease)>());
static_assert(same<ours::PFN_cuMemMap, decltype(&cuMemMap)>());
static_assert(same<ours::PFN_cuMemUnmap, decltype(&cuMemUnmap)>());
static_assert(same<ours::PFN_cuMemSetAccess, decltype(&cuMemSetAccess)>());
static_assert(same<ours::PFN_cuMemGetAccess, decltype(&cuMemGetAccess)>());
static_assert(same<ours::PFN_cuMemExportToShareableHandle, decltype(&cuMemExportToShareableHandle)>());
static_assert(same<ours::PFN_cuMemImportFromShareableHandle, decltype(&cuMemImportFromShareableHandle)>());
static_assert(same<ours::PFN_cuMemGetAllocationGranularity, decltype(&cuMemGetAllocationGranularity)>());
static_assert(same<ours::PFN_cuMemGetAllocationPropertiesFromHandle,
                   decltype(&cuMemGetAllocationPropertiesFromHandle)>());
static_assert(same<ours::PFN_cuMemRetainAllocationHandle, decltype(&cuMemRetainAllocationHandle)>());
static_assert(same<ours::PFN_cuCoredumpGetAttribute, decltype(&cuCoredumpGetAttribute)>());
static_assert(same<ours::PFN_cuCoredumpSetAttribute, decltype(&cuCoredumpSetAttribute)>());
static_assert(same<ours::PFN_cuCoredumpGetAttributeGlobal, decltype(&cuCoredumpGetAttributeGlobal)>());
static_assert(same<ours::PFN_cuCoredumpSetAttributeGlobal, decltype(&cuCoredumpSetAttributeGlobal)>());

}  // namespace
