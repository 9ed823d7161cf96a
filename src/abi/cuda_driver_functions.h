// SPDX-License-Identifier: Apache-2.0
/// The types of the driver's entry points, as pointers, named after the symbol that the library exports:
/// `PFN_cuMemAlloc_v2` is a pointer to `cuMemAlloc_v2`. Where a name has several versions, the one listed is
/// what cuGetProcAddress answers at API version 12000, except for cuCtxCreate, which has them all. Argument
/// names follow the driver's manual in the project's spelling. Checked with cuda_driver.h.
#pragma once

#include "abi/cuda_driver.h"

// ---- Initialization, errors, entry points ----

using PFN_cuInit = CUresult (*)(unsigned int flags);
using PFN_cuDriverGetVersion = CUresult (*)(int* driver_version);
using PFN_cuGetErrorName = CUresult (*)(CUresult error, const char** text);
using PFN_cuGetErrorString = CUresult (*)(CUresult error, const char** text);
using PFN_cuGetProcAddress = CUresult (*)(const char* symbol, void** function, int driver_version,
                                          std::uint64_t flags);
using PFN_cuGetProcAddress_v2 = CUresult (*)(const char* symbol, void** function, int driver_version,
                                             std::uint64_t flags,
                                             CUdriverProcAddressQueryResult* symbol_found);

// ---- Devices ----

using PFN_cuDeviceGet = CUresult (*)(CUdevice* device, int ordinal);
using PFN_cuDeviceGetCount = CUresult (*)(int* count);
using PFN_cuDeviceGetName = CUresult (*)(char* name, int length_bytes, CUdevice device);
using PFN_cuDeviceGetUuid = CUresult (*)(CUuuid* uuid, CUdevice device);
using PFN_cuDeviceGetUuid_v2 = CUresult (*)(CUuuid* uuid, CUdevice device);
using PFN_cuDeviceTotalMem_v2 = CUresult (*)(std::size_t* size_bytes, CUdevice device);
using PFN_cuDeviceGetAttribute = CUresult (*)(int* value, CUdevice_attribute attribute, CUdevice device);
using PFN_cuDeviceComputeCapability = CUresult (*)(int* major, int* minor, CUdevice device);
using PFN_cuDeviceGetPCIBusId = CUresult (*)(char* pci_bus_id, int length_bytes, CUdevice device);
using PFN_cuDeviceGetByPCIBusId = CUresult (*)(CUdevice* device, const char* pci_bus_id);
using PFN_cuDeviceCanAccessPeer = CUresult (*)(int* can_access_peer, CUdevice device, CUdevice peer);

// ---- Contexts ----

using PFN_cuDevicePrimaryCtxRetain = CUresult (*)(CUcontext* context, CUdevice device);
using PFN_cuDevicePrimaryCtxRelease_v2 = CUresult (*)(CUdevice device);
using PFN_cuDevicePrimaryCtxSetFlags_v2 = CUresult (*)(CUdevice device, unsigned int flags);
using PFN_cuDevicePrimaryCtxGetState = CUresult (*)(CUdevice device, unsigned int* flags, int* active);
using PFN_cuDevicePrimaryCtxReset_v2 = CUresult (*)(CUdevice device);
using PFN_cuCtxCreate_v2 = CUresult (*)(CUcontext* context, unsigned int flags, CUdevice device);
using PFN_cuCtxCreate_v3 = CUresult (*)(CUcontext* context, CUexecAffinityParam* params, int param_count,
                                        unsigned int flags, CUdevice device);
using PFN_cuCtxCreate_v4 = CUresult (*)(CUcontext* context, CUctxCreateParams* params, unsigned int flags,
                                        CUdevice device);
using PFN_cuCtxDestroy_v2 = CUresult (*)(CUcontext context);
using PFN_cuCtxPushCurrent_v2 = CUresult (*)(CUcontext context);
using PFN_cuCtxPopCurrent_v2 = CUresult (*)(CUcontext* context);
using PFN_cuCtxSetCurrent = CUresult (*)(CUcontext context);
using PFN_cuCtxGetCurrent = CUresult (*)(CUcontext* context);
using PFN_cuCtxGetDevice = CUresult (*)(CUdevice* device);
using PFN_cuCtxGetFlags = CUresult (*)(unsigned int* flags);
using PFN_cuCtxGetId = CUresult (*)(CUcontext context, unsigned long long* id);
using PFN_cuCtxGetApiVersion = CUresult (*)(CUcontext context, unsigned int* version);
using PFN_cuCtxGetExecAffinity = CUresult (*)(CUexecAffinityParam* affinity, CUexecAffinityType type);
using PFN_cuCtxSynchronize = CUresult (*)();
using PFN_cuCtxSetLimit = CUresult (*)(CUlimit limit, std::size_t value);
using PFN_cuCtxGetLimit = CUresult (*)(std::size_t* value, CUlimit limit);
using PFN_cuCtxGetStreamPriorityRange = CUresult (*)(int* least_priority, int* greatest_priority);

// ---- Modules and functions ----

using PFN_cuModuleLoadData = CUresult (*)(CUmodule* module, const void* image);
using PFN_cuModuleLoadDataEx = CUresult (*)(CUmodule* module, const void* image, unsigned int option_count,
                                            CUjit_option* options, void** option_values);
using PFN_cuModuleUnload = CUresult (*)(CUmodule module);
using PFN_cuModuleGetFunction = CUresult (*)(CUfunction* function, CUmodule module, const char* name);
using PFN_cuModuleGetGlobal_v2 = CUresult (*)(CUdeviceptr* pointer, std::size_t* size_bytes, CUmodule module,
                                              const char* name);
using PFN_cuModuleGetLoadingMode = CUresult (*)(CUmoduleLoadingMode* mode);
using PFN_cuFuncGetAttribute = CUresult (*)(int* value, CUfunction_attribute attribute, CUfunction function);
using PFN_cuFuncSetAttribute = CUresult (*)(CUfunction function, CUfunction_attribute attribute, int value);
using PFN_cuFuncSetCacheConfig = CUresult (*)(CUfunction function, CUfunc_cache config);
using PFN_cuFuncGetName = CUresult (*)(const char** name, CUfunction function);
using PFN_cuLibraryUnload = CUresult (*)(CUlibrary library);
using PFN_cuFuncGetModule = CUresult (*)(CUmodule* module, CUfunction function);
using PFN_cuLaunchKernel = CUresult (*)(CUfunction function, unsigned int grid_dim_x, unsigned int grid_dim_y,
                                        unsigned int grid_dim_z, unsigned int block_dim_x,
                                        unsigned int block_dim_y, unsigned int block_dim_z,
                                        unsigned int shared_bytes, CUstream stream, void** kernel_params,
                                        void** extra);
using PFN_cuLaunchKernelEx = CUresult (*)(const CUlaunchConfig* config, CUfunction function,
                                          void** kernel_params, void** extra);
using PFN_cuLaunchCooperativeKernel = CUresult (*)(CUfunction function, unsigned int grid_dim_x,
                                                   unsigned int grid_dim_y, unsigned int grid_dim_z,
                                                   unsigned int block_dim_x, unsigned int block_dim_y,
                                                   unsigned int block_dim_z, unsigned int shared_bytes,
                                                   CUstream stream, void** kernel_params);
using PFN_cuGraphLaunch = CUresult (*)(CUgraphExec graph, CUstream stream);
using PFN_cuGraphInstantiateWithFlags = CUresult (*)(CUgraphExec* executable, CUgraph graph,
                                                     unsigned long long flags);
using PFN_cuGraphGetNodes = CUresult (*)(CUgraph graph, CUgraphNode* nodes, std::size_t* node_count);
using PFN_cuGraphDestroy = CUresult (*)(CUgraph graph);
using PFN_cuGraphExecDestroy = CUresult (*)(CUgraphExec executable);
using PFN_cuLaunchHostFunc = CUresult (*)(CUstream stream, CUhostFn function, void* user_data);
using PFN_cuOccupancyMaxActiveBlocksPerMultiprocessor = CUresult (*)(int* block_count, CUfunction function,
                                                                     int block_size,
                                                                     std::size_t shared_bytes);
using PFN_cuOccupancyMaxPotentialBlockSize = CUresult (*)(int* min_grid_size, int* block_size,
                                                          CUfunction function,
                                                          CUoccupancyB2DSize shared_bytes_of,
                                                          std::size_t shared_bytes, int block_size_limit);

// ---- Streams and events ----

using PFN_cuStreamCreate = CUresult (*)(CUstream* stream, unsigned int flags);
using PFN_cuStreamCreateWithPriority = CUresult (*)(CUstream* stream, unsigned int flags, int priority);
using PFN_cuStreamDestroy_v2 = CUresult (*)(CUstream stream);
using PFN_cuStreamQuery = CUresult (*)(CUstream stream);
using PFN_cuStreamSynchronize = CUresult (*)(CUstream stream);
using PFN_cuStreamWaitEvent = CUresult (*)(CUstream stream, CUevent event, unsigned int flags);
using PFN_cuStreamGetFlags = CUresult (*)(CUstream stream, unsigned int* flags);
using PFN_cuStreamGetPriority = CUresult (*)(CUstream stream, int* priority);
using PFN_cuStreamGetCtx = CUresult (*)(CUstream stream, CUcontext* context);
using PFN_cuStreamIsCapturing = CUresult (*)(CUstream stream, CUstreamCaptureStatus* capture_status);
using PFN_cuStreamBeginCapture_v2 = CUresult (*)(CUstream stream, CUstreamCaptureMode mode);
using PFN_cuStreamBeginCaptureToGraph = CUresult (*)(CUstream stream, CUgraph graph,
                                                     const CUgraphNode* dependencies,
                                                     const CUgraphEdgeData* edges,
                                                     std::size_t dependency_count, CUstreamCaptureMode mode);
using PFN_cuStreamEndCapture = CUresult (*)(CUstream stream, CUgraph* graph);
using PFN_cuStreamWaitValue32_v2 = CUresult (*)(CUstream stream, CUdeviceptr address, std::uint32_t value,
                                                unsigned int flags);
using PFN_cuStreamWriteValue32_v2 = CUresult (*)(CUstream stream, CUdeviceptr address, std::uint32_t value,
                                                 unsigned int flags);
using PFN_cuStreamWaitValue64_v2 = CUresult (*)(CUstream stream, CUdeviceptr address, std::uint64_t value,
                                                unsigned int flags);
using PFN_cuStreamWriteValue64_v2 = CUresult (*)(CUstream stream, CUdeviceptr address, std::uint64_t value,
                                                 unsigned int flags);
using PFN_cuEventCreate = CUresult (*)(CUevent* event, unsigned int flags);
using PFN_cuEventRecord = CUresult (*)(CUevent event, CUstream stream);
using PFN_cuEventRecordWithFlags = CUresult (*)(CUevent event, CUstream stream, unsigned int flags);
using PFN_cuEventQuery = CUresult (*)(CUevent event);
using PFN_cuEventSynchronize = CUresult (*)(CUevent event);
using PFN_cuEventDestroy_v2 = CUresult (*)(CUevent event);
using PFN_cuEventElapsedTime = CUresult (*)(float* milliseconds, CUevent start, CUevent end);

// ---- Memory ----

using PFN_cuMemGetInfo_v2 = CUresult (*)(std::size_t* free, std::size_t* total);
using PFN_cuMemAlloc_v2 = CUresult (*)(CUdeviceptr* pointer, std::size_t size_bytes);
using PFN_cuMemAllocPitch_v2 = CUresult (*)(CUdeviceptr* pointer, std::size_t* pitch_bytes,
                                            std::size_t width_bytes, std::size_t height,
                                            unsigned int element_size_bytes);
using PFN_cuMemFree_v2 = CUresult (*)(CUdeviceptr pointer);
using PFN_cuIpcGetMemHandle = CUresult (*)(CUipcMemHandle* handle, CUdeviceptr pointer);
using PFN_cuIpcOpenMemHandle_v2 = CUresult (*)(CUdeviceptr* pointer, CUipcMemHandle handle,
                                               unsigned int flags);
using PFN_cuIpcCloseMemHandle = CUresult (*)(CUdeviceptr pointer);
using PFN_cuMemGetAddressRange_v2 = CUresult (*)(CUdeviceptr* base, std::size_t* size_bytes,
                                                 CUdeviceptr pointer);
using PFN_cuMemAllocHost_v2 = CUresult (*)(void** host, std::size_t size_bytes);
using PFN_cuMemHostAlloc = CUresult (*)(void** host, std::size_t size_bytes, unsigned int flags);
using PFN_cuMemFreeHost = CUresult (*)(void* host);
using PFN_cuMemHostGetDevicePointer_v2 = CUresult (*)(CUdeviceptr* pointer, void* host, unsigned int flags);
using PFN_cuMemHostGetFlags = CUresult (*)(unsigned int* flags, void* host);
using PFN_cuMemHostRegister_v2 = CUresult (*)(void* host, std::size_t size_bytes, unsigned int flags);
using PFN_cuMemHostUnregister = CUresult (*)(void* host);
using PFN_cuMemAllocManaged = CUresult (*)(CUdeviceptr* pointer, std::size_t size_bytes, unsigned int flags);
using PFN_cuMemAdvise = CUresult (*)(CUdeviceptr pointer, std::size_t count, CUmem_advise advice,
                                     CUdevice device);
using PFN_cuMemPrefetchAsync = CUresult (*)(CUdeviceptr pointer, std::size_t count, CUdevice destination,
                                            CUstream stream);
using PFN_cuPointerGetAttribute = CUresult (*)(void* data, CUpointer_attribute attribute,
                                               CUdeviceptr pointer);
using PFN_cuPointerGetAttributes = CUresult (*)(unsigned int attribute_count, CUpointer_attribute* attributes,
                                                void** data, CUdeviceptr pointer);

// ---- Copies and fills ----

using PFN_cuMemcpy = CUresult (*)(CUdeviceptr destination, CUdeviceptr source, std::size_t size_bytes);
using PFN_cuMemcpyAsync = CUresult (*)(CUdeviceptr destination, CUdeviceptr source, std::size_t size_bytes,
                                       CUstream stream);
using PFN_cuMemcpyHtoD_v2 = CUresult (*)(CUdeviceptr destination, const void* source, std::size_t size_bytes);
using PFN_cuMemcpyDtoH_v2 = CUresult (*)(void* destination, CUdeviceptr source, std::size_t size_bytes);
using PFN_cuMemcpyDtoD_v2 = CUresult (*)(CUdeviceptr destination, CUdeviceptr source, std::size_t size_bytes);
using PFN_cuMemcpyHtoDAsync_v2 = CUresult (*)(CUdeviceptr destination, const void* source,
                                              std::size_t size_bytes, CUstream stream);
using PFN_cuMemcpyDtoHAsync_v2 = CUresult (*)(void* destination, CUdeviceptr source, std::size_t size_bytes,
                                              CUstream stream);
using PFN_cuMemcpyDtoDAsync_v2 = CUresult (*)(CUdeviceptr destination, CUdeviceptr source,
                                              std::size_t size_bytes, CUstream stream);
using PFN_cuMemcpy2D_v2 = CUresult (*)(const CUDA_MEMCPY2D* copy);
using PFN_cuMemcpy2DAsync_v2 = CUresult (*)(const CUDA_MEMCPY2D* copy, CUstream stream);
using PFN_cuMemsetD8_v2 = CUresult (*)(CUdeviceptr destination, unsigned char value, std::size_t count);
using PFN_cuMemsetD16_v2 = CUresult (*)(CUdeviceptr destination, unsigned short value, std::size_t count);
using PFN_cuMemsetD32_v2 = CUresult (*)(CUdeviceptr destination, unsigned int value, std::size_t count);
using PFN_cuMemsetD8Async = CUresult (*)(CUdeviceptr destination, unsigned char value, std::size_t count,
                                         CUstream stream);
using PFN_cuMemsetD16Async = CUresult (*)(CUdeviceptr destination, unsigned short value, std::size_t count,
                                          CUstream stream);
using PFN_cuMemsetD32Async = CUresult (*)(CUdeviceptr destination, unsigned int value, std::size_t count,
                                          CUstream stream);

// ---- Virtual memory ----

using PFN_cuMemAddressReserve = CUresult (*)(CUdeviceptr* pointer, std::size_t size_bytes,
                                             std::size_t alignment_bytes, CUdeviceptr address,
                                             unsigned long long flags);
using PFN_cuMemAddressFree = CUresult (*)(CUdeviceptr pointer, std::size_t size_bytes);
using PFN_cuMemCreate = CUresult (*)(CUmemGenericAllocationHandle* handle, std::size_t size_bytes,
                                     const CUmemAllocationProp* properties, unsigned long long flags);
using PFN_cuMemRelease = CUresult (*)(CUmemGenericAllocationHandle handle);
using PFN_cuMemMap = CUresult (*)(CUdeviceptr pointer, std::size_t size_bytes, std::size_t offset_bytes,
                                  CUmemGenericAllocationHandle handle, unsigned long long flags);
using PFN_cuMemUnmap = CUresult (*)(CUdeviceptr pointer, std::size_t size_bytes);
using PFN_cuMemSetAccess = CUresult (*)(CUdeviceptr pointer, std::size_t size_bytes,
                                        const CUmemAccessDesc* descriptors, std::size_t count);
using PFN_cuMemGetAccess = CUresult (*)(unsigned long long* flags, const CUmemLocation* location,
                                        CUdeviceptr pointer);
using PFN_cuMemExportToShareableHandle = CUresult (*)(void* shareable_handle,
                                                      CUmemGenericAllocationHandle handle,
                                                      CUmemAllocationHandleType handle_type,
                                                      unsigned long long flags);
using PFN_cuMemImportFromShareableHandle = CUresult (*)(CUmemGenericAllocationHandle* handle, void* os_handle,
                                                        CUmemAllocationHandleType handle_type);
using PFN_cuMemGetAllocationGranularity = CUresult (*)(std::size_t* granularity_bytes,
                                                       const CUmemAllocationProp* properties,
                                                       CUmemAllocationGranularity_flags option);
using PFN_cuMemGetAllocationPropertiesFromHandle = CUresult (*)(CUmemAllocationProp* properties,
                                                                CUmemGenericAllocationHandle handle);
using PFN_cuMemRetainAllocationHandle = CUresult (*)(CUmemGenericAllocationHandle* handle, void* address);

// ---- GPU core dumps ----

using PFN_cuCoredumpGetAttribute = CUresult (*)(CUcoredumpSettings setting, void* value,
                                                std::size_t* size_bytes);
using PFN_cuCoredumpSetAttribute = CUresult (*)(CUcoredumpSettings setting, void* value,
                                                std::size_t* size_bytes);
using PFN_cuCoredumpGetAttributeGlobal = CUresult (*)(CUcoredumpSettings setting, void* value,
                                                      std::size_t* size_bytes);
using PFN_cuCoredumpSetAttributeGlobal = CUresult (*)(CUcoredumpSettings setting, void* value,
                                                      std::size_t* size_bytes);
