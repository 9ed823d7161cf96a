// SPDX-License-Identifier: Apache-2.0
/// Entry points: the nodes of executables are changed.
#include <algorithm>

#include "softgpu/driver/graph_entry.h"
#include "softgpu/driver/graph_launch.h"

using namespace firebreak::softgpu::driver;

namespace {

/// A node of an executable, by the node of its graph.
template <class Action>
CUresult with_entry(CUgraphExec executable, CUgraphNode node, Action&& action) {
  return with_live_process([&](Process& process) {
    const auto exec = process.graph_execs().find(executable);
    if (!exec) return CUDA_ERROR_INVALID_VALUE;
    const std::lock_guard lock(exec->mutex);
    const auto found = std::ranges::find(exec->entries, node, &GraphExec::Entry::node);
    return found == exec->entries.end() ? CUDA_ERROR_INVALID_VALUE : action(process, *found);
  });
}

/// One of that kind.
template <class Kind, class Action>
CUresult with_entry_of(CUgraphExec executable, CUgraphNode node, Action&& action) {
  return with_entry(executable, node, [&](Process& process, GraphExec::Entry& entry) {
    auto* const kind = std::get_if<Kind>(&entry.content.is);
    return kind == nullptr ? CUDA_ERROR_INVALID_VALUE : action(process, *kind);
  });
}

}  // namespace

extern "C" {

CUresult cuGraphExecKernelNodeSetParams_v2(CUgraphExec executable, CUgraphNode node,
                                           const CUDA_KERNEL_NODE_PARAMS* params) {
  return with_entry_of<KernelNode>(
      executable, node, [&](Process& process, KernelNode& kernel) { return set(process, kernel, params); });
}

CUresult cuGraphExecMemcpyNodeSetParams(CUgraphExec executable, CUgraphNode node, const CUDA_MEMCPY3D* copy,
                                        CUcontext context) {
  return with_entry_of<MemcpyNode>(executable, node, [&](Process& process, MemcpyNode& found) {
    if (copy == nullptr || !process.contexts().find(context)) return CUDA_ERROR_INVALID_VALUE;
    const CUresult checked = check(process, *copy);
    if (checked == CUDA_SUCCESS) found.copy = *copy;
    return checked;
  });
}

CUresult cuGraphExecMemsetNodeSetParams(CUgraphExec executable, CUgraphNode node,
                                        const CUDA_MEMSET_NODE_PARAMS* fill, CUcontext context) {
  return with_entry_of<MemsetNode>(executable, node, [&](Process& process, MemsetNode& found) {
    if (fill == nullptr || !process.contexts().find(context)) return CUDA_ERROR_INVALID_VALUE;
    const CUresult checked = check(process, *fill);
    if (checked == CUDA_SUCCESS) found.fill = *fill;
    return checked;
  });
}

CUresult cuGraphExecHostNodeSetParams(CUgraphExec executable, CUgraphNode node,
                                      const CUDA_HOST_NODE_PARAMS* call) {
  return with_entry_of<HostNode>(executable, node, [&](Process&, HostNode& found) {
    if (call == nullptr || call->fn == nullptr) return CUDA_ERROR_INVALID_VALUE;
    found.call = *call;
    return CUDA_SUCCESS;
  });
}

CUresult cuGraphExecChildGraphNodeSetParams(CUgraphExec executable, CUgraphNode node, CUgraph child) {
  return with_entry_of<ChildGraphNode>(executable, node, [&](Process& process, ChildGraphNode& found) {
    const auto inner = process.graphs().find(child);
    if (!inner) return CUDA_ERROR_INVALID_VALUE;
    found.graph = inner->clone();
    return CUDA_SUCCESS;
  });
}

CUresult cuGraphExecEventRecordNodeSetEvent(CUgraphExec executable, CUgraphNode node, CUevent event) {
  return with_entry_of<EventRecordNode>(executable, node, [&](Process& process, EventRecordNode& found) {
    if (!process.events().find(event)) return CUDA_ERROR_INVALID_HANDLE;
    found.event = event;
    return CUDA_SUCCESS;
  });
}

CUresult cuGraphExecEventWaitNodeSetEvent(CUgraphExec executable, CUgraphNode node, CUevent event) {
  return with_entry_of<EventWaitNode>(executable, node, [&](Process& process, EventWaitNode& found) {
    if (!process.events().find(event)) return CUDA_ERROR_INVALID_HANDLE;
    found.event = event;
    return CUDA_SUCCESS;
  });
}

CUresult cuGraphExecNodeSetParams(CUgraphExec executable, CUgraphNode node, CUgraphNodeParams* params) {
  return with_entry(executable, node, [&](Process& process, GraphExec::Entry& entry) {
    return set(process, entry.content, params);
  });
}

CUresult cuGraphNodeSetEnabled(CUgraphExec executable, CUgraphNode node, unsigned int is_enabled) {
  return with_entry(executable, node, [&](Process&, GraphExec::Entry& entry) {
    const CUgraphNodeType type = entry.content.type();
    const bool can_be = type == CU_GRAPH_NODE_TYPE_KERNEL || type == CU_GRAPH_NODE_TYPE_MEMCPY ||
                        type == CU_GRAPH_NODE_TYPE_MEMSET;
    if (!can_be) return CUDA_ERROR_INVALID_VALUE;
    entry.is_enabled = is_enabled != 0;
    return CUDA_SUCCESS;
  });
}

CUresult cuGraphNodeGetEnabled(CUgraphExec executable, CUgraphNode node, unsigned int* is_enabled) {
  return with_entry(executable, node, [&](Process&, GraphExec::Entry& entry) {
    if (is_enabled == nullptr) return CUDA_ERROR_INVALID_VALUE;
    *is_enabled = entry.is_enabled ? 1 : 0;
    return CUDA_SUCCESS;
  });
}

}  // extern "C"
