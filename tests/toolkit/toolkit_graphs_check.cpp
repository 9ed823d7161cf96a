// SPDX-License-Identifier: Apache-2.0
// Compiled only where a CUDA toolkit is installed: every constant and layout of shared/abi/cuda_graphs.h must
// be the toolkit's. Ours come first and inside a namespace.
#include <cstddef>
#include <cstdint>

namespace ours {
#include "shared/abi/cuda_graphs.h"
}  // namespace ours

#include <cuda.h>

#include "tests/toolkit/toolkit_comparison.h"

namespace {

using firebreak::cuda::same;
using firebreak::cuda::same_size;

static_assert(same_size<ours::CUgraphNodeType, CUgraphNodeType>());
static_assert(same(ours::CU_GRAPH_NODE_TYPE_KERNEL, CU_GRAPH_NODE_TYPE_KERNEL));
static_assert(same(ours::CU_GRAPH_NODE_TYPE_MEMCPY, CU_GRAPH_NODE_TYPE_MEMCPY));
static_assert(same(ours::CU_GRAPH_NODE_TYPE_MEMSET, CU_GRAPH_NODE_TYPE_MEMSET));
static_assert(same(ours::CU_GRAPH_NODE_TYPE_HOST, CU_GRAPH_NODE_TYPE_HOST));
static_assert(same(ours::CU_GRAPH_NODE_TYPE_GRAPH, CU_GRAPH_NODE_TYPE_GRAPH));
static_assert(same(ours::CU_GRAPH_NODE_TYPE_EMPTY, CU_GRAPH_NODE_TYPE_EMPTY));
static_assert(same(ours::CU_GRAPH_NODE_TYPE_WAIT_EVENT, CU_GRAPH_NODE_TYPE_WAIT_EVENT));
static_assert(same(ours::CU_GRAPH_NODE_TYPE_EVENT_RECORD, CU_GRAPH_NODE_TYPE_EVENT_RECORD));
static_assert(same(ours::CU_GRAPH_NODE_TYPE_EXT_SEMAS_SIGNAL, CU_GRAPH_NODE_TYPE_EXT_SEMAS_SIGNAL));
static_assert(same(ours::CU_GRAPH_NODE_TYPE_EXT_SEMAS_WAIT, CU_GRAPH_NODE_TYPE_EXT_SEMAS_WAIT));
static_assert(same(ours::CU_GRAPH_NODE_TYPE_MEM_ALLOC, CU_GRAPH_NODE_TYPE_MEM_ALLOC));
static_assert(same(ours::CU_GRAPH_NODE_TYPE_MEM_FREE, CU_GRAPH_NODE_TYPE_MEM_FREE));
static_assert(same(ours::CU_GRAPH_NODE_TYPE_BATCH_MEM_OP, CU_GRAPH_NODE_TYPE_BATCH_MEM_OP));
static_assert(same(ours::CU_GRAPH_NODE_TYPE_CONDITIONAL, CU_GRAPH_NODE_TYPE_CONDITIONAL));

static_assert(same_size<ours::CUDA_KERNEL_NODE_PARAMS_v1, CUDA_KERNEL_NODE_PARAMS_v1>());
static_assert(offsetof(ours::CUDA_KERNEL_NODE_PARAMS_v1, func) == offsetof(CUDA_KERNEL_NODE_PARAMS_v1, func));
static_assert(sizeof(ours::CUDA_KERNEL_NODE_PARAMS_v1::func) == sizeof(CUDA_KERNEL_NODE_PARAMS_v1::func));
static_assert(offsetof(ours::CUDA_KERNEL_NODE_PARAMS_v1, gridDimX) ==
              offsetof(CUDA_KERNEL_NODE_PARAMS_v1, gridDimX));
static_assert(sizeof(ours::CUDA_KERNEL_NODE_PARAMS_v1::gridDimX) ==
              sizeof(CUDA_KERNEL_NODE_PARAMS_v1::gridDimX));
static_assert(offsetof(ours::CUDA_KERNEL_NODE_PARAMS_v1, gridDimY) ==
              offsetof(CUDA_KERNEL_NODE_PARAMS_v1, gridDimY));
static_assert(sizeof(ours::CUDA_KERNEL_NODE_PARAMS_v1::gridDimY) ==
              sizeof(CUDA_KERNEL_NODE_PARAMS_v1::gridDimY));
static_assert(offsetof(ours::CUDA_KERNEL_NODE_PARAMS_v1, gridDimZ) ==
              offsetof(CUDA_KERNEL_NODE_PARAMS_v1, gridDimZ));
static_assert(sizeof(ours::CUDA_KERNEL_NODE_PARAMS_v1::gridDimZ) ==
              sizeof(CUDA_KERNEL_NODE_PARAMS_v1::gridDimZ));
static_assert(offsetof(ours::CUDA_KERNEL_NODE_PARAMS_v1, blockDimX) ==
              offsetof(CUDA_KERNEL_NODE_PARAMS_v1, blockDimX));
static_assert(sizeof(ours::CUDA_KERNEL_NODE_PARAMS_v1::blockDimX) ==
              sizeof(CUDA_KERNEL_NODE_PARAMS_v1::blockDimX));
static_assert(offsetof(ours::CUDA_KERNEL_NODE_PARAMS_v1, blockDimY) ==
              offsetof(CUDA_KERNEL_NODE_PARAMS_v1, blockDimY));
static_assert(sizeof(ours::CUDA_KERNEL_NODE_PARAMS_v1::blockDimY) ==
              sizeof(CUDA_KERNEL_NODE_PARAMS_v1::blockDimY));
static_assert(offsetof(ours::CUDA_KERNEL_NODE_PARAMS_v1, blockDimZ) ==
              offsetof(CUDA_KERNEL_NODE_PARAMS_v1, blockDimZ));
static_assert(sizeof(ours::CUDA_KERNEL_NODE_PARAMS_v1::blockDimZ) ==
              sizeof(CUDA_KERNEL_NODE_PARAMS_v1::blockDimZ));
static_assert(offsetof(ours::CUDA_KERNEL_NODE_PARAMS_v1, sharedMemBytes) ==
              offsetof(CUDA_KERNEL_NODE_PARAMS_v1, sharedMemBytes));
static_assert(sizeof(ours::CUDA_KERNEL_NODE_PARAMS_v1::sharedMemBytes) ==
              sizeof(CUDA_KERNEL_NODE_PARAMS_v1::sharedMemBytes));
static_assert(offsetof(ours::CUDA_KERNEL_NODE_PARAMS_v1, kernelParams) ==
              offsetof(CUDA_KERNEL_NODE_PARAMS_v1, kernelParams));
static_assert(sizeof(ours::CUDA_KERNEL_NODE_PARAMS_v1::kernelParams) ==
              sizeof(CUDA_KERNEL_NODE_PARAMS_v1::kernelParams));
static_assert(offsetof(ours::CUDA_KERNEL_NODE_PARAMS_v1, extra) ==
              offsetof(CUDA_KERNEL_NODE_PARAMS_v1, extra));
static_assert(sizeof(ours::CUDA_KERNEL_NODE_PARAMS_v1::extra) == sizeof(CUDA_KERNEL_NODE_PARAMS_v1::extra));

static_assert(same_size<ours::CUDA_KERNEL_NODE_PARAMS, CUDA_KERNEL_NODE_PARAMS>());
static_assert(offsetof(ours::CUDA_KERNEL_NODE_PARAMS, func) == offsetof(CUDA_KERNEL_NODE_PARAMS, func));
static_assert(sizeof(ours::CUDA_KERNEL_NODE_PARAMS::func) == sizeof(CUDA_KERNEL_NODE_PARAMS::func));
static_assert(offsetof(ours::CUDA_KERNEL_NODE_PARAMS, gridDimX) ==
              offsetof(CUDA_KERNEL_NODE_PARAMS, gridDimX));
static_assert(sizeof(ours::CUDA_KERNEL_NODE_PARAMS::gridDimX) == sizeof(CUDA_KERNEL_NODE_PARAMS::gridDimX));
static_assert(offsetof(ours::CUDA_KERNEL_NODE_PARAMS, gridDimY) ==
              offsetof(CUDA_KERNEL_NODE_PARAMS, gridDimY));
static_assert(sizeof(ours::CUDA_KERNEL_NODE_PARAMS::gridDimY) == sizeof(CUDA_KERNEL_NODE_PARAMS::gridDimY));
static_assert(offsetof(ours::CUDA_KERNEL_NODE_PARAMS, gridDimZ) ==
              offsetof(CUDA_KERNEL_NODE_PARAMS, gridDimZ));
static_assert(sizeof(ours::CUDA_KERNEL_NODE_PARAMS::gridDimZ) == sizeof(CUDA_KERNEL_NODE_PARAMS::gridDimZ));
static_assert(offsetof(ours::CUDA_KERNEL_NODE_PARAMS, blockDimX) ==
              offsetof(CUDA_KERNEL_NODE_PARAMS, blockDimX));
static_assert(sizeof(ours::CUDA_KERNEL_NODE_PARAMS::blockDimX) == sizeof(CUDA_KERNEL_NODE_PARAMS::blockDimX));
static_assert(offsetof(ours::CUDA_KERNEL_NODE_PARAMS, blockDimY) ==
              offsetof(CUDA_KERNEL_NODE_PARAMS, blockDimY));
static_assert(sizeof(ours::CUDA_KERNEL_NODE_PARAMS::blockDimY) == sizeof(CUDA_KERNEL_NODE_PARAMS::blockDimY));
static_assert(offsetof(ours::CUDA_KERNEL_NODE_PARAMS, blockDimZ) ==
              offsetof(CUDA_KERNEL_NODE_PARAMS, blockDimZ));
static_assert(sizeof(ours::CUDA_KERNEL_NODE_PARAMS::blockDimZ) == sizeof(CUDA_KERNEL_NODE_PARAMS::blockDimZ));
static_assert(offsetof(ours::CUDA_KERNEL_NODE_PARAMS, sharedMemBytes) ==
              offsetof(CUDA_KERNEL_NODE_PARAMS, sharedMemBytes));
static_assert(sizeof(ours::CUDA_KERNEL_NODE_PARAMS::sharedMemBytes) ==
              sizeof(CUDA_KERNEL_NODE_PARAMS::sharedMemBytes));
static_assert(offsetof(ours::CUDA_KERNEL_NODE_PARAMS, kernelParams) ==
              offsetof(CUDA_KERNEL_NODE_PARAMS, kernelParams));
static_assert(sizeof(ours::CUDA_KERNEL_NODE_PARAMS::kernelParams) ==
              sizeof(CUDA_KERNEL_NODE_PARAMS::kernelParams));
static_assert(offsetof(ours::CUDA_KERNEL_NODE_PARAMS, extra) == offsetof(CUDA_KERNEL_NODE_PARAMS, extra));
static_assert(sizeof(ours::CUDA_KERNEL_NODE_PARAMS::extra) == sizeof(CUDA_KERNEL_NODE_PARAMS::extra));
static_assert(offsetof(ours::CUDA_KERNEL_NODE_PARAMS, kern) == offsetof(CUDA_KERNEL_NODE_PARAMS, kern));
static_assert(sizeof(ours::CUDA_KERNEL_NODE_PARAMS::kern) == sizeof(CUDA_KERNEL_NODE_PARAMS::kern));
static_assert(offsetof(ours::CUDA_KERNEL_NODE_PARAMS, ctx) == offsetof(CUDA_KERNEL_NODE_PARAMS, ctx));
static_assert(sizeof(ours::CUDA_KERNEL_NODE_PARAMS::ctx) == sizeof(CUDA_KERNEL_NODE_PARAMS::ctx));

static_assert(same_size<ours::CUDA_MEMSET_NODE_PARAMS, CUDA_MEMSET_NODE_PARAMS>());
static_assert(offsetof(ours::CUDA_MEMSET_NODE_PARAMS, dst) == offsetof(CUDA_MEMSET_NODE_PARAMS, dst));
static_assert(sizeof(ours::CUDA_MEMSET_NODE_PARAMS::dst) == sizeof(CUDA_MEMSET_NODE_PARAMS::dst));
static_assert(offsetof(ours::CUDA_MEMSET_NODE_PARAMS, pitch) == offsetof(CUDA_MEMSET_NODE_PARAMS, pitch));
static_assert(sizeof(ours::CUDA_MEMSET_NODE_PARAMS::pitch) == sizeof(CUDA_MEMSET_NODE_PARAMS::pitch));
static_assert(offsetof(ours::CUDA_MEMSET_NODE_PARAMS, value) == offsetof(CUDA_MEMSET_NODE_PARAMS, value));
static_assert(sizeof(ours::CUDA_MEMSET_NODE_PARAMS::value) == sizeof(CUDA_MEMSET_NODE_PARAMS::value));
static_assert(offsetof(ours::CUDA_MEMSET_NODE_PARAMS, elementSize) ==
              offsetof(CUDA_MEMSET_NODE_PARAMS, elementSize));
static_assert(sizeof(ours::CUDA_MEMSET_NODE_PARAMS::elementSize) ==
              sizeof(CUDA_MEMSET_NODE_PARAMS::elementSize));
static_assert(offsetof(ours::CUDA_MEMSET_NODE_PARAMS, width) == offsetof(CUDA_MEMSET_NODE_PARAMS, width));
static_assert(sizeof(ours::CUDA_MEMSET_NODE_PARAMS::width) == sizeof(CUDA_MEMSET_NODE_PARAMS::width));
static_assert(offsetof(ours::CUDA_MEMSET_NODE_PARAMS, height) == offsetof(CUDA_MEMSET_NODE_PARAMS, height));
static_assert(sizeof(ours::CUDA_MEMSET_NODE_PARAMS::height) == sizeof(CUDA_MEMSET_NODE_PARAMS::height));

static_assert(same_size<ours::CUDA_HOST_NODE_PARAMS, CUDA_HOST_NODE_PARAMS>());
static_assert(offsetof(ours::CUDA_HOST_NODE_PARAMS, fn) == offsetof(CUDA_HOST_NODE_PARAMS, fn));
static_assert(sizeof(ours::CUDA_HOST_NODE_PARAMS::fn) == sizeof(CUDA_HOST_NODE_PARAMS::fn));
static_assert(offsetof(ours::CUDA_HOST_NODE_PARAMS, userData) == offsetof(CUDA_HOST_NODE_PARAMS, userData));
static_assert(sizeof(ours::CUDA_HOST_NODE_PARAMS::userData) == sizeof(CUDA_HOST_NODE_PARAMS::userData));

static_assert(same_size<ours::CUDA_MEMCPY_NODE_PARAMS, CUDA_MEMCPY_NODE_PARAMS>());
static_assert(offsetof(ours::CUDA_MEMCPY_NODE_PARAMS, flags) == offsetof(CUDA_MEMCPY_NODE_PARAMS, flags));
static_assert(sizeof(ours::CUDA_MEMCPY_NODE_PARAMS::flags) == sizeof(CUDA_MEMCPY_NODE_PARAMS::flags));
static_assert(offsetof(ours::CUDA_MEMCPY_NODE_PARAMS, reserved) ==
              offsetof(CUDA_MEMCPY_NODE_PARAMS, reserved));
static_assert(sizeof(ours::CUDA_MEMCPY_NODE_PARAMS::reserved) == sizeof(CUDA_MEMCPY_NODE_PARAMS::reserved));
static_assert(offsetof(ours::CUDA_MEMCPY_NODE_PARAMS, copyCtx) == offsetof(CUDA_MEMCPY_NODE_PARAMS, copyCtx));
static_assert(sizeof(ours::CUDA_MEMCPY_NODE_PARAMS::copyCtx) == sizeof(CUDA_MEMCPY_NODE_PARAMS::copyCtx));
static_assert(offsetof(ours::CUDA_MEMCPY_NODE_PARAMS, copyParams) ==
              offsetof(CUDA_MEMCPY_NODE_PARAMS, copyParams));
static_assert(sizeof(ours::CUDA_MEMCPY_NODE_PARAMS::copyParams) ==
              sizeof(CUDA_MEMCPY_NODE_PARAMS::copyParams));

static_assert(same_size<ours::CUDA_MEMSET_NODE_PARAMS_v2, CUDA_MEMSET_NODE_PARAMS_v2>());
static_assert(offsetof(ours::CUDA_MEMSET_NODE_PARAMS_v2, dst) == offsetof(CUDA_MEMSET_NODE_PARAMS_v2, dst));
static_assert(sizeof(ours::CUDA_MEMSET_NODE_PARAMS_v2::dst) == sizeof(CUDA_MEMSET_NODE_PARAMS_v2::dst));
static_assert(offsetof(ours::CUDA_MEMSET_NODE_PARAMS_v2, pitch) ==
              offsetof(CUDA_MEMSET_NODE_PARAMS_v2, pitch));
static_assert(sizeof(ours::CUDA_MEMSET_NODE_PARAMS_v2::pitch) == sizeof(CUDA_MEMSET_NODE_PARAMS_v2::pitch));
static_assert(offsetof(ours::CUDA_MEMSET_NODE_PARAMS_v2, value) ==
              offsetof(CUDA_MEMSET_NODE_PARAMS_v2, value));
static_assert(sizeof(ours::CUDA_MEMSET_NODE_PARAMS_v2::value) == sizeof(CUDA_MEMSET_NODE_PARAMS_v2::value));
static_assert(offsetof(ours::CUDA_MEMSET_NODE_PARAMS_v2, elementSize) ==
              offsetof(CUDA_MEMSET_NODE_PARAMS_v2, elementSize));
static_assert(sizeof(ours::CUDA_MEMSET_NODE_PARAMS_v2::elementSize) ==
              sizeof(CUDA_MEMSET_NODE_PARAMS_v2::elementSize));
static_assert(offsetof(ours::CUDA_MEMSET_NODE_PARAMS_v2, width) ==
              offsetof(CUDA_MEMSET_NODE_PARAMS_v2, width));
static_assert(sizeof(ours::CUDA_MEMSET_NODE_PARAMS_v2::width) == sizeof(CUDA_MEMSET_NODE_PARAMS_v2::width));
static_assert(offsetof(ours::CUDA_MEMSET_NODE_PARAMS_v2, height) ==
              offsetof(CUDA_MEMSET_NODE_PARAMS_v2, height));
static_assert(sizeof(ours::CUDA_MEMSET_NODE_PARAMS_v2::height) == sizeof(CUDA_MEMSET_NODE_PARAMS_v2::height));
static_assert(offsetof(ours::CUDA_MEMSET_NODE_PARAMS_v2, ctx) == offsetof(CUDA_MEMSET_NODE_PARAMS_v2, ctx));
static_assert(sizeof(ours::CUDA_MEMSET_NODE_PARAMS_v2::ctx) == sizeof(CUDA_MEMSET_NODE_PARAMS_v2::ctx));

static_assert(same_size<ours::CUDA_EVENT_WAIT_NODE_PARAMS, CUDA_EVENT_WAIT_NODE_PARAMS>());
static_assert(offsetof(ours::CUDA_EVENT_WAIT_NODE_PARAMS, event) ==
              offsetof(CUDA_EVENT_WAIT_NODE_PARAMS, event));
static_assert(sizeof(ours::CUDA_EVENT_WAIT_NODE_PARAMS::event) == sizeof(CUDA_EVENT_WAIT_NODE_PARAMS::event));

static_assert(same_size<ours::CUDA_EVENT_RECORD_NODE_PARAMS, CUDA_EVENT_RECORD_NODE_PARAMS>());
static_assert(offsetof(ours::CUDA_EVENT_RECORD_NODE_PARAMS, event) ==
              offsetof(CUDA_EVENT_RECORD_NODE_PARAMS, event));
static_assert(sizeof(ours::CUDA_EVENT_RECORD_NODE_PARAMS::event) ==
              sizeof(CUDA_EVENT_RECORD_NODE_PARAMS::event));

static_assert(same_size<ours::CUDA_BATCH_MEM_OP_NODE_PARAMS_v2, CUDA_BATCH_MEM_OP_NODE_PARAMS_v2>());
static_assert(offsetof(ours::CUDA_BATCH_MEM_OP_NODE_PARAMS_v2, ctx) ==
              offsetof(CUDA_BATCH_MEM_OP_NODE_PARAMS_v2, ctx));
static_assert(sizeof(ours::CUDA_BATCH_MEM_OP_NODE_PARAMS_v2::ctx) ==
              sizeof(CUDA_BATCH_MEM_OP_NODE_PARAMS_v2::ctx));
static_assert(offsetof(ours::CUDA_BATCH_MEM_OP_NODE_PARAMS_v2, count) ==
              offsetof(CUDA_BATCH_MEM_OP_NODE_PARAMS_v2, count));
static_assert(sizeof(ours::CUDA_BATCH_MEM_OP_NODE_PARAMS_v2::count) ==
              sizeof(CUDA_BATCH_MEM_OP_NODE_PARAMS_v2::count));
static_assert(offsetof(ours::CUDA_BATCH_MEM_OP_NODE_PARAMS_v2, paramArray) ==
              offsetof(CUDA_BATCH_MEM_OP_NODE_PARAMS_v2, paramArray));
static_assert(sizeof(ours::CUDA_BATCH_MEM_OP_NODE_PARAMS_v2::paramArray) ==
              sizeof(CUDA_BATCH_MEM_OP_NODE_PARAMS_v2::paramArray));
static_assert(offsetof(ours::CUDA_BATCH_MEM_OP_NODE_PARAMS_v2, flags) ==
              offsetof(CUDA_BATCH_MEM_OP_NODE_PARAMS_v2, flags));
static_assert(sizeof(ours::CUDA_BATCH_MEM_OP_NODE_PARAMS_v2::flags) ==
              sizeof(CUDA_BATCH_MEM_OP_NODE_PARAMS_v2::flags));

static_assert(same_size<ours::CUDA_CONDITIONAL_NODE_PARAMS, CUDA_CONDITIONAL_NODE_PARAMS>());
static_assert(offsetof(ours::CUDA_CONDITIONAL_NODE_PARAMS, handle) ==
              offsetof(CUDA_CONDITIONAL_NODE_PARAMS, handle));
static_assert(sizeof(ours::CUDA_CONDITIONAL_NODE_PARAMS::handle) ==
              sizeof(CUDA_CONDITIONAL_NODE_PARAMS::handle));
static_assert(offsetof(ours::CUDA_CONDITIONAL_NODE_PARAMS, type) ==
              offsetof(CUDA_CONDITIONAL_NODE_PARAMS, type));
static_assert(sizeof(ours::CUDA_CONDITIONAL_NODE_PARAMS::type) == sizeof(CUDA_CONDITIONAL_NODE_PARAMS::type));
static_assert(offsetof(ours::CUDA_CONDITIONAL_NODE_PARAMS, size) ==
              offsetof(CUDA_CONDITIONAL_NODE_PARAMS, size));
static_assert(sizeof(ours::CUDA_CONDITIONAL_NODE_PARAMS::size) == sizeof(CUDA_CONDITIONAL_NODE_PARAMS::size));
static_assert(offsetof(ours::CUDA_CONDITIONAL_NODE_PARAMS, phGraph_out) ==
              offsetof(CUDA_CONDITIONAL_NODE_PARAMS, phGraph_out));
static_assert(sizeof(ours::CUDA_CONDITIONAL_NODE_PARAMS::phGraph_out) ==
              sizeof(CUDA_CONDITIONAL_NODE_PARAMS::phGraph_out));
static_assert(offsetof(ours::CUDA_CONDITIONAL_NODE_PARAMS, ctx) ==
              offsetof(CUDA_CONDITIONAL_NODE_PARAMS, ctx));
static_assert(sizeof(ours::CUDA_CONDITIONAL_NODE_PARAMS::ctx) == sizeof(CUDA_CONDITIONAL_NODE_PARAMS::ctx));

static_assert(same_size<ours::CUgraphNodeParams, CUgraphNodeParams>());
static_assert(offsetof(ours::CUgraphNodeParams, type) == offsetof(CUgraphNodeParams, type));
static_assert(offsetof(ours::CUgraphNodeParams, reserved0) == offsetof(CUgraphNodeParams, reserved0));
static_assert(offsetof(ours::CUgraphNodeParams, kernel) == offsetof(CUgraphNodeParams, kernel));
static_assert(offsetof(ours::CUgraphNodeParams, memcpy) == offsetof(CUgraphNodeParams, memcpy));
static_assert(offsetof(ours::CUgraphNodeParams, memset) == offsetof(CUgraphNodeParams, memset));
static_assert(offsetof(ours::CUgraphNodeParams, host) == offsetof(CUgraphNodeParams, host));
static_assert(offsetof(ours::CUgraphNodeParams, graph) == offsetof(CUgraphNodeParams, graph));
static_assert(offsetof(ours::CUgraphNodeParams, eventWait) == offsetof(CUgraphNodeParams, eventWait));
static_assert(offsetof(ours::CUgraphNodeParams, eventRecord) == offsetof(CUgraphNodeParams, eventRecord));
static_assert(offsetof(ours::CUgraphNodeParams, memOp) == offsetof(CUgraphNodeParams, memOp));
static_assert(offsetof(ours::CUgraphNodeParams, conditional) == offsetof(CUgraphNodeParams, conditional));
static_assert(offsetof(ours::CUgraphNodeParams, reserved2) == offsetof(CUgraphNodeParams, reserved2));

#if CUDA_VERSION >= 12090  // older ones have no `ownership`, and zeros in its place
static_assert(same_size<ours::CUgraphChildGraphNodeOwnership, CUgraphChildGraphNodeOwnership>());
static_assert(same(ours::CU_GRAPH_CHILD_GRAPH_OWNERSHIP_CLONE, CU_GRAPH_CHILD_GRAPH_OWNERSHIP_CLONE));
static_assert(same(ours::CU_GRAPH_CHILD_GRAPH_OWNERSHIP_MOVE, CU_GRAPH_CHILD_GRAPH_OWNERSHIP_MOVE));
static_assert(same_size<ours::CUDA_CHILD_GRAPH_NODE_PARAMS, CUDA_CHILD_GRAPH_NODE_PARAMS>());
static_assert(offsetof(ours::CUDA_CHILD_GRAPH_NODE_PARAMS, graph) ==
              offsetof(CUDA_CHILD_GRAPH_NODE_PARAMS, graph));
static_assert(sizeof(ours::CUDA_CHILD_GRAPH_NODE_PARAMS::graph) ==
              sizeof(CUDA_CHILD_GRAPH_NODE_PARAMS::graph));
static_assert(offsetof(ours::CUDA_CHILD_GRAPH_NODE_PARAMS, ownership) ==
              offsetof(CUDA_CHILD_GRAPH_NODE_PARAMS, ownership));
static_assert(sizeof(ours::CUDA_CHILD_GRAPH_NODE_PARAMS::ownership) ==
              sizeof(CUDA_CHILD_GRAPH_NODE_PARAMS::ownership));
#endif

static_assert(same_size<ours::CUgraphInstantiate_flags, CUgraphInstantiate_flags>());
static_assert(same(ours::CUDA_GRAPH_INSTANTIATE_FLAG_AUTO_FREE_ON_LAUNCH,
                   CUDA_GRAPH_INSTANTIATE_FLAG_AUTO_FREE_ON_LAUNCH));
static_assert(same(ours::CUDA_GRAPH_INSTANTIATE_FLAG_UPLOAD, CUDA_GRAPH_INSTANTIATE_FLAG_UPLOAD));
static_assert(same(ours::CUDA_GRAPH_INSTANTIATE_FLAG_DEVICE_LAUNCH,
                   CUDA_GRAPH_INSTANTIATE_FLAG_DEVICE_LAUNCH));
static_assert(same(ours::CUDA_GRAPH_INSTANTIATE_FLAG_USE_NODE_PRIORITY,
                   CUDA_GRAPH_INSTANTIATE_FLAG_USE_NODE_PRIORITY));

static_assert(same_size<ours::CUgraphInstantiateResult, CUgraphInstantiateResult>());
static_assert(same(ours::CUDA_GRAPH_INSTANTIATE_SUCCESS, CUDA_GRAPH_INSTANTIATE_SUCCESS));

static_assert(same_size<ours::CUDA_GRAPH_INSTANTIATE_PARAMS, CUDA_GRAPH_INSTANTIATE_PARAMS>());
static_assert(offsetof(ours::CUDA_GRAPH_INSTANTIATE_PARAMS, flags) ==
              offsetof(CUDA_GRAPH_INSTANTIATE_PARAMS, flags));
static_assert(sizeof(ours::CUDA_GRAPH_INSTANTIATE_PARAMS::flags) ==
              sizeof(CUDA_GRAPH_INSTANTIATE_PARAMS::flags));
static_assert(offsetof(ours::CUDA_GRAPH_INSTANTIATE_PARAMS, hUploadStream) ==
              offsetof(CUDA_GRAPH_INSTANTIATE_PARAMS, hUploadStream));
static_assert(sizeof(ours::CUDA_GRAPH_INSTANTIATE_PARAMS::hUploadStream) ==
              sizeof(CUDA_GRAPH_INSTANTIATE_PARAMS::hUploadStream));
static_assert(offsetof(ours::CUDA_GRAPH_INSTANTIATE_PARAMS, hErrNode_out) ==
              offsetof(CUDA_GRAPH_INSTANTIATE_PARAMS, hErrNode_out));
static_assert(sizeof(ours::CUDA_GRAPH_INSTANTIATE_PARAMS::hErrNode_out) ==
              sizeof(CUDA_GRAPH_INSTANTIATE_PARAMS::hErrNode_out));
static_assert(offsetof(ours::CUDA_GRAPH_INSTANTIATE_PARAMS, result_out) ==
              offsetof(CUDA_GRAPH_INSTANTIATE_PARAMS, result_out));
static_assert(sizeof(ours::CUDA_GRAPH_INSTANTIATE_PARAMS::result_out) ==
              sizeof(CUDA_GRAPH_INSTANTIATE_PARAMS::result_out));

static_assert(same_size<ours::CUgraphExecUpdateResult, CUgraphExecUpdateResult>());
static_assert(same(ours::CU_GRAPH_EXEC_UPDATE_SUCCESS, CU_GRAPH_EXEC_UPDATE_SUCCESS));
static_assert(same(ours::CU_GRAPH_EXEC_UPDATE_ERROR_TOPOLOGY_CHANGED,
                   CU_GRAPH_EXEC_UPDATE_ERROR_TOPOLOGY_CHANGED));
static_assert(same(ours::CU_GRAPH_EXEC_UPDATE_ERROR_NODE_TYPE_CHANGED,
                   CU_GRAPH_EXEC_UPDATE_ERROR_NODE_TYPE_CHANGED));

static_assert(same_size<ours::CUgraphExecUpdateResultInfo, CUgraphExecUpdateResultInfo>());
static_assert(offsetof(ours::CUgraphExecUpdateResultInfo, result) ==
              offsetof(CUgraphExecUpdateResultInfo, result));
static_assert(sizeof(ours::CUgraphExecUpdateResultInfo::result) ==
              sizeof(CUgraphExecUpdateResultInfo::result));
static_assert(offsetof(ours::CUgraphExecUpdateResultInfo, errorNode) ==
              offsetof(CUgraphExecUpdateResultInfo, errorNode));
static_assert(sizeof(ours::CUgraphExecUpdateResultInfo::errorNode) ==
              sizeof(CUgraphExecUpdateResultInfo::errorNode));
static_assert(offsetof(ours::CUgraphExecUpdateResultInfo, errorFromNode) ==
              offsetof(CUgraphExecUpdateResultInfo, errorFromNode));
static_assert(sizeof(ours::CUgraphExecUpdateResultInfo::errorFromNode) ==
              sizeof(CUgraphExecUpdateResultInfo::errorFromNode));

static_assert(
    same_size<ours::CUstreamUpdateCaptureDependencies_flags, CUstreamUpdateCaptureDependencies_flags>());
static_assert(same(ours::CU_STREAM_ADD_CAPTURE_DEPENDENCIES, CU_STREAM_ADD_CAPTURE_DEPENDENCIES));
static_assert(same(ours::CU_STREAM_SET_CAPTURE_DEPENDENCIES, CU_STREAM_SET_CAPTURE_DEPENDENCIES));

}  // namespace
