// SPDX-License-Identifier: Apache-2.0
#include "softgpu/driver/graph_launch.h"

#include <utility>

#include "softgpu/driver/boxes.h"

namespace firebreak::softgpu::driver {

namespace {

Dimensions dimensions_of(const std::uint32_t (&from)[3]) { return {from[0], from[1], from[2]}; }

Answer<Launch> launch_of(const Function& function, const KernelNode& node) {
  std::vector<std::byte> parameters = node.parameters;
  std::size_t size_bytes = parameters.size();
  void* extra[] = {reinterpret_cast<void*>(CU_LAUNCH_PARAM_BUFFER_POINTER_AS_INT), parameters.data(),
                   reinterpret_cast<void*>(CU_LAUNCH_PARAM_BUFFER_SIZE_AS_INT), &size_bytes,
                   reinterpret_cast<void*>(CU_LAUNCH_PARAM_END_AS_INT)};
  return prepare_launch(function, dimensions_of(node.grid), dimensions_of(node.block), node.shared_bytes,
                        {nullptr, parameters.empty() ? nullptr : extra});
}

FillRequest request_of(const CUDA_MEMSET_NODE_PARAMS& fill) {
  return {fill.dst, fill.value, fill.elementSize, fill.width, fill.height, fill.pitch, false};
}

/// Gives the stream what one node does.
struct Submit {
  Process& process;
  Context& context;
  const std::shared_ptr<Stream>& stream;

  CUresult give(Work work) const {
    context.submit(stream, std::move(work));
    return CUDA_SUCCESS;
  }
  CUresult operator()(const EmptyNode&) const { return CUDA_SUCCESS; }
  CUresult operator()(const KernelNode& node) const {
    const auto function = process.functions().find(node.function);
    if (!function) return CUDA_ERROR_INVALID_HANDLE;
    auto launch = launch_of(*function, node);
    return launch ? give(work_of_launch(process, context, std::move(*launch))) : launch.error();
  }
  CUresult operator()(const MemcpyNode& node) const {
    const auto layers = layers_of(process, node.copy);
    if (!layers) return layers.error();
    for (const CopyRequest& layer : *layers) {
      auto work = work_of_copy(process, layer);
      if (!work) return work.error();
      give(std::move(*work));
    }
    return CUDA_SUCCESS;
  }
  CUresult operator()(const MemsetNode& node) const {
    auto work = work_of_fill(process, request_of(node.fill));
    return work ? give(std::move(*work)) : work.error();
  }
  CUresult operator()(const HostNode& node) const {
    Work work;
    work.on_gpu = false;
    work.run = [call = node.call]() -> WorkOutcome {
      call.fn(call.userData);
      return WorkDone{};
    };
    return give(std::move(work));
  }
  CUresult operator()(const EventRecordNode& node) const {
    const auto event = process.events().find(node.event);
    if (!event) return CUDA_ERROR_INVALID_HANDLE;
    Work work;
    work.on_gpu = false;
    event->record(context.submit(stream, std::move(work)));
    return CUDA_SUCCESS;
  }
  CUresult operator()(const EventWaitNode& node) const {
    const auto event = process.events().find(node.event);
    if (!event) return CUDA_ERROR_INVALID_HANDLE;
    Work work;
    work.on_gpu = false;
    if (CompletionPointer recorded = event->recorded()) work.dependencies.push_back(std::move(recorded));
    return give(std::move(work));
  }
  CUresult operator()(const ChildGraphNode& node) const {
    const auto nodes = node.graph->in_some_order();
    if (!nodes) return CUDA_ERROR_INVALID_VALUE;
    for (const auto& each : *nodes) {
      if (const CUresult result = std::visit(*this, each->content.is); result != CUDA_SUCCESS) return result;
    }
    return CUDA_SUCCESS;
  }
  CUresult operator()(const OtherNode& node) const { return give(node.work.again()); }
};

}  // namespace

Answer<KernelNode> kernel_node_of(Process& process, const CUDA_KERNEL_NODE_PARAMS& params) {
  const CUfunction handle = params.func != nullptr ? params.func : reinterpret_cast<CUfunction>(params.kern);
  const auto function = process.functions().find(handle);
  if (!function) return refuse(CUDA_ERROR_INVALID_HANDLE);
  const LaunchArguments arguments{params.kernelParams, params.extra};
  const auto launch = prepare_launch(*function, {params.gridDimX, params.gridDimY, params.gridDimZ},
                                     {params.blockDimX, params.blockDimY, params.blockDimZ},
                                     params.sharedMemBytes, arguments);
  if (!launch) return refuse(launch.error());
  return node_of_launch(*function, handle, *launch, arguments);
}

CUresult check(Process& process, const CUDA_MEMCPY3D& copy) {
  const auto layers = layers_of(process, copy);
  if (!layers) return layers.error();
  for (const CopyRequest& layer : *layers) {
    if (const auto work = work_of_copy(process, layer); !work) return work.error();
  }
  return CUDA_SUCCESS;
}

CUresult check(Process& process, const CUDA_MEMSET_NODE_PARAMS& fill) {
  const bool is_element = fill.elementSize == 1 || fill.elementSize == 2 || fill.elementSize == 4;
  if (!is_element) return CUDA_ERROR_INVALID_VALUE;
  const auto work = work_of_fill(process, request_of(fill));
  return work ? CUDA_SUCCESS : work.error();
}

Answer<NodeContent> content_of(Process& process, const CUgraphNodeParams& params) {
  switch (params.type) {
    case CU_GRAPH_NODE_TYPE_KERNEL: {
      auto kernel = kernel_node_of(process, params.kernel);
      if (!kernel) return refuse(kernel.error());
      return NodeContent{std::move(*kernel)};
    }
    case CU_GRAPH_NODE_TYPE_MEMCPY: {
      if (!process.contexts().find(params.memcpy.copyCtx)) return refuse(CUDA_ERROR_INVALID_VALUE);
      const CUresult checked = check(process, params.memcpy.copyParams);
      if (checked != CUDA_SUCCESS) return refuse(checked);
      return NodeContent{MemcpyNode{params.memcpy.copyParams}};
    }
    case CU_GRAPH_NODE_TYPE_MEMSET: {
      const CUDA_MEMSET_NODE_PARAMS_v2& from = params.memset;
      if (!process.contexts().find(from.ctx)) return refuse(CUDA_ERROR_INVALID_VALUE);
      const CUDA_MEMSET_NODE_PARAMS fill{from.dst,         from.pitch, from.value,
                                         from.elementSize, from.width, from.height};
      const CUresult checked = check(process, fill);
      if (checked != CUDA_SUCCESS) return refuse(checked);
      return NodeContent{MemsetNode{fill}};
    }
    case CU_GRAPH_NODE_TYPE_HOST:
      if (params.host.fn == nullptr) return refuse(CUDA_ERROR_INVALID_VALUE);
      return NodeContent{HostNode{params.host}};
    case CU_GRAPH_NODE_TYPE_GRAPH: {
      const auto inner = process.graphs().find(params.graph.graph);
      if (!inner) return refuse(CUDA_ERROR_INVALID_VALUE);
      if (params.graph.ownership == CU_GRAPH_CHILD_GRAPH_OWNERSHIP_MOVE)
        return NodeContent{ChildGraphNode{inner}};
      const auto clone = inner->clone();
      process.graphs().add(clone);
      return NodeContent{ChildGraphNode{clone}};
    }
    case CU_GRAPH_NODE_TYPE_EMPTY:
      return NodeContent{EmptyNode{}};
    case CU_GRAPH_NODE_TYPE_WAIT_EVENT:
      if (!process.events().find(params.eventWait.event)) return refuse(CUDA_ERROR_INVALID_HANDLE);
      return NodeContent{EventWaitNode{params.eventWait.event}};
    case CU_GRAPH_NODE_TYPE_EVENT_RECORD:
      if (!process.events().find(params.eventRecord.event)) return refuse(CUDA_ERROR_INVALID_HANDLE);
      return NodeContent{EventRecordNode{params.eventRecord.event}};
    default:
      return refuse(CUDA_ERROR_NOT_SUPPORTED);
  }
}

CUresult set(Process& process, KernelNode& into, const CUDA_KERNEL_NODE_PARAMS* params) {
  if (params == nullptr) return CUDA_ERROR_INVALID_VALUE;
  auto made = kernel_node_of(process, *params);
  if (!made) return made.error();
  made->attributes = std::move(into.attributes);
  into = std::move(*made);
  return CUDA_SUCCESS;
}

CUresult set(Process& process, NodeContent& into, const CUgraphNodeParams* params) {
  if (params == nullptr || params->type != into.type()) return CUDA_ERROR_INVALID_VALUE;
  auto made = content_of(process, *params);
  if (!made) return made.error();
  if (auto* const kernel = std::get_if<KernelNode>(&made->is))
    kernel->attributes = std::move(std::get<KernelNode>(into.is).attributes);
  into = std::move(*made);
  return CUDA_SUCCESS;
}

Answer<std::shared_ptr<GraphExec>> instantiate(const Graph& graph, unsigned long long flags) {
  const auto nodes = graph.in_some_order();
  if (!nodes) return refuse(CUDA_ERROR_INVALID_VALUE);
  auto made = std::make_shared<GraphExec>();
  made->flags = flags;
  for (const auto& node : *nodes) {
    NodeContent content = node->content;
    if (auto* const child = std::get_if<ChildGraphNode>(&content.is)) child->graph = child->graph->clone();
    made->entries.push_back({node->handle(), std::move(content)});
  }
  return made;
}

CUresult launch(Process& process, Context& context, const std::shared_ptr<Stream>& stream, GraphExec& exec) {
  const std::lock_guard lock(exec.mutex);
  for (const GraphExec::Entry& entry : exec.entries) {
    if (!entry.is_enabled) continue;
    const CUresult result = std::visit(Submit{process, context, stream}, entry.content.is);
    if (result != CUDA_SUCCESS) return result;
  }
  return CUDA_SUCCESS;
}

}  // namespace firebreak::softgpu::driver
