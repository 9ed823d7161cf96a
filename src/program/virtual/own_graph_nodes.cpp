// SPDX-License-Identifier: Apache-2.0
/// An executable's nodes are changed, one at a time. Its graph may be gone by then.
#include <optional>

#include "program/virtual/calls.h"

namespace firebreak::virtual_driver::own {
namespace {

CUgraphNode node_of(const Turn& turn, const std::shared_ptr<ExecState>& state, CUgraphNode node) {
  Graphs& graphs = turn.all.graphs();
  return state == nullptr ? graphs.node_in(node, turn.slot) : graphs.node_of_exec(*state, node, turn.slot);
}

/// Changes one node of an executable by `set_one`, and by `read_one` what is known of it.
template <class Set, class Read>
CUresult set_node(const OwnCall& call, CUgraphExec exec, CUgraphNode node, const Set& set_one,
                  const Read& read_one) {
  return call.all.call([&](const Turn& turn) {
    Graphs& graphs = call.all.graphs();
    const auto lock = graphs.lock();
    const auto state = graphs.find_exec(exec);
    const CUresult result =
        set_one(turn, turn.objects.translate(exec, turn.slot), node_of(turn, state, node));
    if (result != CUDA_SUCCESS || state == nullptr || state->content == nullptr) return result;
    auto content = std::make_shared<GraphContent>(*state->content);
    const GraphSource source{turn.driver,          turn.slot,       turn.objects, call.all.taken(),
                             call.all.arguments(), content->context};
    constexpr const char* why_unknown = "it changes a graph in a way that is not followed";
    const char* why = why_unknown;
    for (GraphNodeContent& each : content->nodes) {
      if (each.seen == number_of(node)) why = read_one(source, each);
    }
    if (why != nullptr) call.all.stand_aside(*why == '\0' ? why_unknown : why);  // the driver has failed
    graphs.update_exec(turn, *state, std::move(content));
    return result;
  });
}

}  // namespace

CUresult cuGraphExecKernelNodeSetParams_v2(const OwnCall& call, CUgraphExec exec, CUgraphNode node,
                                           const CUDA_KERNEL_NODE_PARAMS* params) {
  if (params == nullptr) return CUDA_ERROR_INVALID_VALUE;
  CUDA_KERNEL_NODE_PARAMS here{};
  return set_node(
      call, exec, node,
      [&](const Turn& turn, CUgraphExec own, CUgraphNode of) {
        here = *static_cast<const CUDA_KERNEL_NODE_PARAMS*>(KernelNodeParams(turn, params));
        return turn.driver.cuGraphExecKernelNodeSetParams_v2(own, of, &here);
      },
      [&](const GraphSource& source, GraphNodeContent& into) { return read_kernel(source, here, into); });
}

CUresult cuGraphExecKernelNodeSetParams(const OwnCall& call, CUgraphExec exec, CUgraphNode node,
                                        const CUDA_KERNEL_NODE_PARAMS_v1* params) {
  if (params == nullptr) return CUDA_ERROR_INVALID_VALUE;
  CUDA_KERNEL_NODE_PARAMS here{};
  return set_node(
      call, exec, node,
      [&](const Turn& turn, CUgraphExec own, CUgraphNode of) {
        const CUDA_KERNEL_NODE_PARAMS_v1 first =
            *static_cast<const CUDA_KERNEL_NODE_PARAMS_v1*>(KernelNodeParams(turn, params));
        here = {first.func,         first.gridDimX,  first.gridDimY,  first.gridDimZ,
                first.blockDimX,    first.blockDimY, first.blockDimZ, first.sharedMemBytes,
                first.kernelParams, first.extra,     nullptr,         nullptr};
        return turn.driver.cuGraphExecKernelNodeSetParams(own, of, &first);
      },
      [&](const GraphSource& source, GraphNodeContent& into) { return read_kernel(source, here, into); });
}

CUresult cuGraphExecMemcpyNodeSetParams(const OwnCall& call, CUgraphExec exec, CUgraphNode node,
                                        const CUDA_MEMCPY3D* copy, CUcontext context) {
  if (copy == nullptr) return CUDA_ERROR_INVALID_VALUE;
  CUDA_MEMCPY3D here{};
  return set_node(
      call, exec, node,
      [&](const Turn& turn, CUgraphExec own, CUgraphNode of) {
        here = *static_cast<const CUDA_MEMCPY3D*>(Copy<CUDA_MEMCPY3D>(turn, copy));
        return turn.driver.cuGraphExecMemcpyNodeSetParams(own, of, &here,
                                                          turn.objects.translate(context, turn.slot));
      },
      [&](const GraphSource& source, GraphNodeContent& into) { return read_copy(source, here, into); });
}

CUresult cuGraphExecMemsetNodeSetParams(const OwnCall& call, CUgraphExec exec, CUgraphNode node,
                                        const CUDA_MEMSET_NODE_PARAMS* fill, CUcontext context) {
  if (fill == nullptr) return CUDA_ERROR_INVALID_VALUE;
  CUDA_MEMSET_NODE_PARAMS here{};
  return set_node(
      call, exec, node,
      [&](const Turn& turn, CUgraphExec own, CUgraphNode of) {
        here = *static_cast<const CUDA_MEMSET_NODE_PARAMS*>(Fill(turn, fill));
        return turn.driver.cuGraphExecMemsetNodeSetParams(own, of, &here,
                                                          turn.objects.translate(context, turn.slot));
      },
      [&](const GraphSource& source, GraphNodeContent& into) { return read_fill(source, here, into); });
}

CUresult cuGraphExecHostNodeSetParams(const OwnCall& call, CUgraphExec exec, CUgraphNode node,
                                      const CUDA_HOST_NODE_PARAMS* params) {
  if (params == nullptr) return CUDA_ERROR_INVALID_VALUE;
  return set_node(
      call, exec, node,
      [&](const Turn& turn, CUgraphExec own, CUgraphNode of) {
        return turn.driver.cuGraphExecHostNodeSetParams(own, of, params);
      },
      [&](const GraphSource&, GraphNodeContent& into) {
        into.call = *params;
        return static_cast<const char*>(nullptr);
      });
}

CUresult cuGraphExecChildGraphNodeSetParams(const OwnCall& call, CUgraphExec exec, CUgraphNode node,
                                            CUgraph child) {
  CUgraph here = nullptr;
  return set_node(
      call, exec, node,
      [&](const Turn& turn, CUgraphExec own, CUgraphNode of) {
        here = turn.objects.translate(child, turn.slot);
        return turn.driver.cuGraphExecChildGraphNodeSetParams(own, of, here);
      },
      [&](const GraphSource& source, GraphNodeContent& into) { return read_child(source, here, into); });
}

namespace {

using SetEvent = CUresult (*cuda::Backend::*)(CUgraphExec, CUgraphNode, CUevent);

CUresult set_event(const OwnCall& call, CUgraphExec exec, CUgraphNode node, CUevent event, SetEvent set) {
  CUevent here = nullptr;
  return set_node(
      call, exec, node,
      [&](const Turn& turn, CUgraphExec own, CUgraphNode of) {
        here = turn.objects.translate(event, turn.slot);
        return (turn.driver.*set)(own, of, here);
      },
      [&](const GraphSource& source, GraphNodeContent& into) { return read_event(source, here, into); });
}

}  // namespace

CUresult cuGraphExecEventRecordNodeSetEvent(const OwnCall& call, CUgraphExec exec, CUgraphNode node,
                                            CUevent event) {
  return set_event(call, exec, node, event, &cuda::Backend::cuGraphExecEventRecordNodeSetEvent);
}

CUresult cuGraphExecEventWaitNodeSetEvent(const OwnCall& call, CUgraphExec exec, CUgraphNode node,
                                          CUevent event) {
  return set_event(call, exec, node, event, &cuda::Backend::cuGraphExecEventWaitNodeSetEvent);
}

CUresult cuGraphExecNodeSetParams(const OwnCall& call, CUgraphExec exec, CUgraphNode node,
                                  CUgraphNodeParams* params) {
  if (params == nullptr) return CUDA_ERROR_INVALID_VALUE;
  std::optional<NodeParams> here;
  return set_node(
      call, exec, node,
      [&](const Turn& turn, CUgraphExec own, CUgraphNode of) {
        here.emplace(turn, params);
        return turn.driver.cuGraphExecNodeSetParams(own, of, *here);
      },
      [&](const GraphSource& source, GraphNodeContent& into) {
        return read_params(source, *static_cast<CUgraphNodeParams*>(*here), into);
      });
}

/// What it does stays, and comes again when it is enabled; a new graph for the executable does not enable it.
CUresult cuGraphNodeSetEnabled(const OwnCall& call, CUgraphExec exec, CUgraphNode node,
                               unsigned int is_enabled) {
  return set_node(
      call, exec, node,
      [&](const Turn& turn, CUgraphExec own, CUgraphNode of) {
        return turn.driver.cuGraphNodeSetEnabled(own, of, is_enabled);
      },
      [&](const GraphSource&, GraphNodeContent& into) {
        into.is_enabled = is_enabled != 0;
        return static_cast<const char*>(nullptr);
      });
}

CUresult cuGraphNodeGetEnabled(const OwnCall& call, CUgraphExec exec, CUgraphNode node,
                               unsigned int* is_enabled) {
  return call.all.call([&](const Turn& turn) {
    const auto lock = call.all.graphs().lock();
    const CUgraphNode own = node_of(turn, call.all.graphs().find_exec(exec), node);
    return turn.driver.cuGraphNodeGetEnabled(turn.objects.translate(exec, turn.slot), own, is_enabled);
  });
}

}  // namespace firebreak::virtual_driver::own
