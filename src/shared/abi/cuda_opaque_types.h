// SPDX-License-Identifier: Apache-2.0
/// Types of the CUDA driver API that only pass through the project: whoever looks into one moves it to
/// cuda_driver.h, with its members and values. Handles and enumerations have their size, structures have
/// none.
#pragma once

#include <cstddef>
#include <cstdint>

#include "shared/abi/cuda_driver.h"

// ---- Handles ----

using CUkernel = struct CUkern_st*;
using CUlinkState = struct CUlinkState_st*;
using CUgreenCtx = struct CUgreenCtx_st*;
using CUdevResourceDesc = struct CUdevResourceDesc_st*;
using CUmemoryPool = struct CUmemPoolHandle_st*;
using CUmipmappedArray = struct CUmipmappedArray_st*;
using CUtexref = struct CUtexref_st*;
using CUsurfref = struct CUsurfref_st*;
using CUexternalMemory = struct CUextMemory_st*;
using CUexternalSemaphore = struct CUextSemaphore_st*;
using CUgraphicsResource = struct CUgraphicsResource_st*;
using CUuserObject = struct CUuserObject_st*;
using CUasyncCallbackHandle = struct CUasyncCallbackEntry_st*;
using CUlogsCallbackHandle = struct CUlogsCallbackEntry_st*;
using CUtexObject = unsigned long long;
using CUsurfObject = unsigned long long;
using CUgraphConditionalHandle = std::uint64_t;
using CUlogIterator = unsigned int;
using CUdeviceptr_v1 = unsigned int;  ///< type of CUDA before 3.2

// ---- Enumerations ----

enum CUaddress_mode : int;
enum CUarray_format : int;
enum CUatomicOperation : int;
enum CUdevResourceType : int;
enum CUdevice_P2PAttribute : int;
enum CUfilter_mode : int;
enum CUflushGPUDirectRDMAWritesScope : int;
enum CUflushGPUDirectRDMAWritesTarget : int;
enum CUfunctionLoadingState : int;
enum CUgraphExecUpdateResult : int;
enum CUgraphMem_attribute : int;
enum CUgraphNodeType : int;
enum CUjitInputType : int;
enum CUlibraryOption : int;
enum CUlogLevel : int;
enum CUmemPool_attribute : int;
enum CUmemRangeHandleType : int;
enum CUmem_range_attribute : int;
enum CUmulticastGranularity_flags : int;
enum CUoutput_mode : int;
enum CUprocessState : int;
enum CUsharedconfig : int;
enum CUtensorMapDataType : int;
enum CUtensorMapFloatOOBfill : int;
enum CUtensorMapIm2ColWideMode : int;
enum CUtensorMapInterleave : int;
enum CUtensorMapL2promotion : int;
enum CUtensorMapSwizzle : int;
using CUkernelNodeAttrID = CUlaunchAttributeID;
using CUstreamAttrID = CUlaunchAttributeID;

// ---- Structures and unions ----

struct CUDA_ARRAY3D_DESCRIPTOR;
struct CUDA_ARRAY3D_DESCRIPTOR_v1;
struct CUDA_ARRAY_DESCRIPTOR;
struct CUDA_ARRAY_DESCRIPTOR_v1;
struct CUDA_ARRAY_MEMORY_REQUIREMENTS;
struct CUDA_ARRAY_SPARSE_PROPERTIES;
struct CUDA_BATCH_MEM_OP_NODE_PARAMS;
struct CUDA_EXTERNAL_MEMORY_BUFFER_DESC;
struct CUDA_EXTERNAL_MEMORY_HANDLE_DESC;
struct CUDA_EXTERNAL_MEMORY_MIPMAPPED_ARRAY_DESC;
struct CUDA_EXTERNAL_SEMAPHORE_HANDLE_DESC;
struct CUDA_EXTERNAL_SEMAPHORE_SIGNAL_PARAMS;
struct CUDA_EXTERNAL_SEMAPHORE_WAIT_PARAMS;
struct CUDA_EXT_SEM_SIGNAL_NODE_PARAMS;
struct CUDA_EXT_SEM_WAIT_NODE_PARAMS;
struct CUDA_GRAPH_INSTANTIATE_PARAMS;
struct CUDA_HOST_NODE_PARAMS;
struct CUDA_KERNEL_NODE_PARAMS;
struct CUDA_KERNEL_NODE_PARAMS_v1;
struct CUDA_LAUNCH_PARAMS;
struct CUDA_MEMCPY2D_v1;
struct CUDA_MEMCPY3D;
struct CUDA_MEMCPY3D_BATCH_OP;
struct CUDA_MEMCPY3D_PEER;
struct CUDA_MEMCPY3D_v1;
struct CUDA_MEMSET_NODE_PARAMS;
struct CUDA_MEM_ALLOC_NODE_PARAMS;
struct CUDA_RESOURCE_DESC;
struct CUDA_RESOURCE_VIEW_DESC;
struct CUDA_TEXTURE_DESC;
struct CUarrayMapInfo;
struct CUasyncNotificationInfo;
struct CUcheckpointCheckpointArgs;
struct CUcheckpointLockArgs;
struct CUcheckpointRestoreArgs;
struct CUcheckpointUnlockArgs;
struct CUdevResource;
struct CUdevprop;
struct CUgraphExecUpdateResultInfo;
struct CUgraphNodeParams;
struct CUmemDecompressParams;
struct CUmemPoolProps;
struct CUmemPoolPtrExportData;
struct CUmemcpyAttributes;
struct CUmulticastObjectProp;
struct CUtensorMap;
union CUstreamBatchMemOpParams;
using CUkernelNodeAttrValue = CUlaunchAttributeValue;
using CUstreamAttrValue = CUlaunchAttributeValue;

/// Passed by value, so its size counts.
struct CUipcEventHandle {
  char reserved[64];
};

// ---- Callbacks ----

using CUstreamCallback = void (*)(CUstream stream, CUresult status, void* user_data);
using CUasyncCallback = void (*)(CUasyncNotificationInfo* info, void* user_data,
                                 CUasyncCallbackHandle callback);
using CUlogsCallback = void (*)(void* user_data, CUlogLevel level, char* message, std::size_t length_bytes);
