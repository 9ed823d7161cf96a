// SPDX-License-Identifier: Apache-2.0
/// Entry points: the nodes of graphs, one kind after the other.
#include <algorithm>
#include <cstring>

#include "softgpu/driver/graph_entry.h"
#include "softgpu/driver/graph_launch.h"

using namespace firebreak::softgpu::driver;

namespace {

struct After {
  const CUgraphNode* nodes;
  std::size_t count;
};

CUresult add(Graph& graph, CUgraphNode* node, const After& after, NodeContent content) {
  if (node == nullptr || (after.count != 0 && after.nodes == nullptr)) return CUDA_ERROR_INVALID_VALUE;
  GraphNodes dependencies;
  for (std::size_t i = 0; i < after.count; ++i) {
    dependencies.push_back(graph.find(after.nodes[i]));
    if (!dependencies.back()) return CUDA_ERROR_INVALID_VALUE;
  }
  *node = graph.add(std::move(content), dependencies)->handle();
  return CUDA_SUCCESS;
}

/// Lists are given as the driver answers them: how many there are, or as many as there is room for.
template <class Item>
CUresult give(const std::vector<Item>& all, Item* into, std::size_t* count) {
  if (count == nullptr) return CUDA_ERROR_INVALID_VALUE;
  if (into != nullptr) std::copy_n(all.begin(), std::min(*count, all.size()), into);
  if (into != nullptr && *count > all.size()) std::fill(into + all.size(), into + *count, Item{});
  *count = into == nullptr ? all.size() : std::min(*count, all.size());
  return CUDA_SUCCESS;
}

std::vector<CUgraphNode> handles_of(const GraphNodes& nodes) {
  std::vector<CUgraphNode> all;
  for (const auto& node : nodes) all.push_back(node->handle());
  return all;
}

/// Nothing is said of how one node waits for another.
bool are_plain(const CUgraphEdgeData* data, std::size_t count) {
  constexpr CUgraphEdgeData plain{};
  return data == nullptr || std::all_of(data, data + count, [&](const CUgraphEdgeData& each) {
           return std::memcmp(&each, &plain, sizeof plain) == 0;
         });
}

}  // namespace

extern "C" {

// ---- Kernels ----

CUresult cuGraphAddKernelNode_v2(CUgraphNode* node, CUgraph graph, const CUgraphNode* dependencies,
                                 std::size_t count, const CUDA_KERNEL_NODE_PARAMS* params) {
  return with_graph(graph, [&](Process& process, Graph& found) {
    KernelNode made;
    const CUresult result = set(process, made, params);
    return result != CUDA_SUCCESS ? result : add(found, node, {dependencies, count}, {std::move(made)});
  });
}

CUresult cuGraphKernelNodeGetParams_v2(CUgraphNode node, CUDA_KERNEL_NODE_PARAMS* params) {
  return with_node_of<KernelNode>(node, [&](Process&, GraphNode& found, const KernelNode& kernel) {
    if (params == nullptr) return CUDA_ERROR_INVALID_VALUE;
    *params = {kernel.function,    kernel.grid[0],  kernel.grid[1],  kernel.grid[2],
               kernel.block[0],    kernel.block[1], kernel.block[2], kernel.shared_bytes,
               found.parameters(), found.extra(),   nullptr,         kernel.context};
    return CUDA_SUCCESS;
  });
}

CUresult cuGraphKernelNodeSetParams_v2(CUgraphNode node, const CUDA_KERNEL_NODE_PARAMS* params) {
  return with_node_of<KernelNode>(
      node, [&](Process& process, GraphNode&, KernelNode& kernel) { return set(process, kernel, params); });
}

CUresult cuGraphKernelNodeGetAttribute(CUgraphNode node, CUkernelNodeAttrID attribute,
                                       CUkernelNodeAttrValue* value) {
  return with_node_of<KernelNode>(node, [&](Process&, GraphNode&, const KernelNode& kernel) {
    const bool is_known =
        attribute == CU_LAUNCH_ATTRIBUTE_COOPERATIVE || attribute == CU_LAUNCH_ATTRIBUTE_PRIORITY;
    if (value == nullptr || !is_known) return CUDA_ERROR_INVALID_VALUE;
    const auto set_before = kernel.attributes.find(attribute);
    *value = set_before == kernel.attributes.end() ? CUlaunchAttributeValue{} : set_before->second;
    return CUDA_SUCCESS;
  });
}

CUresult cuGraphKernelNodeSetAttribute(CUgraphNode node, CUkernelNodeAttrID attribute,
                                       const CUkernelNodeAttrValue* value) {
  return with_node_of<KernelNode>(node, [&](Process&, GraphNode&, KernelNode& kernel) {
    const bool is_known =
        attribute == CU_LAUNCH_ATTRIBUTE_COOPERATIVE || attribute == CU_LAUNCH_ATTRIBUTE_PRIORITY;
    if (value == nullptr || !is_known) return CUDA_ERROR_INVALID_VALUE;
    kernel.attributes[attribute] = *value;
    return CUDA_SUCCESS;
  });
}

// ---- Copies and fills ----

CUresult cuGraphAddMemcpyNode(CUgraphNode* node, CUgraph graph, const CUgraphNode* dependencies,
                              std::size_t count, const CUDA_MEMCPY3D* copy, CUcontext context) {
  return with_graph(graph, [&](Process& process, Graph& found) {
    if (copy == nullptr || !process.contexts().find(context)) return CUDA_ERROR_INVALID_VALUE;
    const CUresult checked = check(process, *copy);
    return checked != CUDA_SUCCESS ? checked : add(found, node, {dependencies, count}, {MemcpyNode{*copy}});
  });
}

CUresult cuGraphMemcpyNodeGetParams(CUgraphNode node, CUDA_MEMCPY3D* copy) {
  return with_node_of<MemcpyNode>(node, [&](Process&, GraphNode&, const MemcpyNode& found) {
    if (copy == nullptr) return CUDA_ERROR_INVALID_VALUE;
    *copy = found.copy;
    return CUDA_SUCCESS;
  });
}

CUresult cuGraphAddMemsetNode(CUgraphNode* node, CUgraph graph, const CUgraphNode* dependencies,
                              std::size_t count, const CUDA_MEMSET_NODE_PARAMS* fill, CUcontext context) {
  return with_graph(graph, [&](Process& process, Graph& found) {
    if (fill == nullptr || !process.contexts().find(context)) return CUDA_ERROR_INVALID_VALUE;
    const CUresult checked = check(process, *fill);
    return checked != CUDA_SUCCESS ? checked : add(found, node, {dependencies, count}, {MemsetNode{*fill}});
  });
}

CUresult cuGraphMemsetNodeGetParams(CUgraphNode node, CUDA_MEMSET_NODE_PARAMS* fill) {
  return with_node_of<MemsetNode>(node, [&](Process&, GraphNode&, const MemsetNode& found) {
    if (fill == nullptr) return CUDA_ERROR_INVALID_VALUE;
    *fill = found.fill;
    return CUDA_SUCCESS;
  });
}

// ---- The rest ----

CUresult cuGraphAddHostNode(CUgraphNode* node, CUgraph graph, const CUgraphNode* dependencies,
                            std::size_t count, const CUDA_HOST_NODE_PARAMS* call) {
  return with_graph(graph, [&](Process&, Graph& found) {
    if (call == nullptr || call->fn == nullptr) return CUDA_ERROR_INVALID_VALUE;
    return add(found, node, {dependencies, count}, {HostNode{*call}});
  });
}

CUresult cuGraphHostNodeGetParams(CUgraphNode node, CUDA_HOST_NODE_PARAMS* call) {
  return with_node_of<HostNode>(node, [&](Process&, GraphNode&, const HostNode& found) {
    if (call == nullptr) return CUDA_ERROR_INVALID_VALUE;
    *call = found.call;
    return CUDA_SUCCESS;
  });
}

CUresult cuGraphAddEmptyNode(CUgraphNode* node, CUgraph graph, const CUgraphNode* dependencies,
                             std::size_t count) {
  return with_graph(graph, [&](Process&, Graph& found) {
    return add(found, node, {dependencies, count}, {EmptyNode{}});
  });
}

CUresult cuGraphAddChildGraphNode(CUgraphNode* node, CUgraph graph, const CUgraphNode* dependencies,
                                  std::size_t count, CUgraph child) {
  return with_graph(graph, [&](Process& process, Graph& found) {
    const auto inner = process.graphs().find(child);
    if (!inner || inner.get() == &found) return CUDA_ERROR_INVALID_VALUE;
    // Its handle stays the node's own: it is found as others are, and goes with this one's.
    const auto clone = inner->clone();
    process.graphs().add(clone);
    return add(found, node, {dependencies, count}, {ChildGraphNode{clone}});
  });
}

CUresult cuGraphChildGraphNodeGetGraph(CUgraphNode node, CUgraph* graph) {
  return with_node_of<ChildGraphNode>(node, [&](Process& process, GraphNode&, const ChildGraphNode& found) {
    if (graph == nullptr) return CUDA_ERROR_INVALID_VALUE;
    *graph = found.graph->handle();
    if (!process.graphs().find(*graph)) process.graphs().add(found.graph);
    return CUDA_SUCCESS;
  });
}

CUresult cuGraphAddEventRecordNode(CUgraphNode* node, CUgraph graph, const CUgraphNode* dependencies,
                                   std::size_t count, CUevent event) {
  return with_graph(graph, [&](Process& process, Graph& found) {
    if (!process.events().find(event)) return CUDA_ERROR_INVALID_HANDLE;
    return add(found, node, {dependencies, count}, {EventRecordNode{event}});
  });
}

CUresult cuGraphEventRecordNodeGetEvent(CUgraphNode node, CUevent* event) {
  return with_node_of<EventRecordNode>(node, [&](Process&, GraphNode&, const EventRecordNode& found) {
    if (event == nullptr) return CUDA_ERROR_INVALID_VALUE;
    *event = found.event;
    return CUDA_SUCCESS;
  });
}

CUresult cuGraphAddEventWaitNode(CUgraphNode* node, CUgraph graph, const CUgraphNode* dependencies,
                                 std::size_t count, CUevent event) {
  return with_graph(graph, [&](Process& process, Graph& found) {
    if (!process.events().find(event)) return CUDA_ERROR_INVALID_HANDLE;
    return add(found, node, {dependencies, count}, {EventWaitNode{event}});
  });
}

CUresult cuGraphEventWaitNodeGetEvent(CUgraphNode node, CUevent* event) {
  return with_node_of<EventWaitNode>(node, [&](Process&, GraphNode&, const EventWaitNode& found) {
    if (event == nullptr) return CUDA_ERROR_INVALID_VALUE;
    *event = found.event;
    return CUDA_SUCCESS;
  });
}

CUresult cuGraphDestroyNode(CUgraphNode node) {
  return with_node(node, [&](Process&, const std::shared_ptr<GraphNode>& found) {
    if (found->graph() == nullptr) return CUDA_ERROR_INVALID_VALUE;
    found->graph()->remove(found);
    return CUDA_SUCCESS;
  });
}

// ---- Nodes of any type ----

CUresult cuGraphAddNode(CUgraphNode* node, CUgraph graph, const CUgraphNode* dependencies, std::size_t count,
                        CUgraphNodeParams* params) {
  return with_graph(graph, [&](Process& process, Graph& found) {
    if (params == nullptr) return CUDA_ERROR_INVALID_VALUE;
    if (params->type == CU_GRAPH_NODE_TYPE_GRAPH && params->graph.graph == graph)
      return CUDA_ERROR_INVALID_VALUE;
    auto content = content_of(process, *params);
    return content ? add(found, node, {dependencies, count}, std::move(*content)) : content.error();
  });
}

CUresult cuGraphAddNode_v2(CUgraphNode* node, CUgraph graph, const CUgraphNode* dependencies,
                           const CUgraphEdgeData* data, std::size_t count, CUgraphNodeParams* params) {
  if (!are_plain(data, count)) return CUDA_ERROR_NOT_SUPPORTED;
  return cuGraphAddNode(node, graph, dependencies, count, params);
}

CUresult cuGraphNodeSetParams(CUgraphNode node, CUgraphNodeParams* params) {
  return with_node(node, [&](Process& process, const std::shared_ptr<GraphNode>& found) {
    return set(process, found->content, params);
  });
}

// ---- What a graph is made of ----

CUresult cuGraphNodeGetType(CUgraphNode node, CUgraphNodeType* type) {
  return with_node(node, [&](Process&, const std::shared_ptr<GraphNode>& found) {
    if (type == nullptr) return CUDA_ERROR_INVALID_VALUE;
    *type = found->content.type();
    return CUDA_SUCCESS;
  });
}

CUresult cuGraphGetNodes(CUgraph graph, CUgraphNode* nodes, std::size_t* count) {
  return with_graph(graph,
                    [&](Process&, Graph& found) { return give(handles_of(found.nodes()), nodes, count); });
}

CUresult cuGraphGetRootNodes(CUgraph graph, CUgraphNode* nodes, std::size_t* count) {
  return with_graph(graph, [&](Process&, Graph& found) {
    GraphNodes roots = found.nodes();
    std::erase_if(roots, [](const auto& node) { return !node->dependencies.empty(); });
    return give(handles_of(roots), nodes, count);
  });
}

CUresult cuGraphGetEdges(CUgraph graph, CUgraphNode* from, CUgraphNode* to, std::size_t* count) {
  return with_graph(graph, [&](Process&, Graph& found) {
    if ((from == nullptr) != (to == nullptr) || count == nullptr) return CUDA_ERROR_INVALID_VALUE;
    std::vector<CUgraphNode> begins;
    std::vector<CUgraphNode> ends;
    for (const auto& [begin, end] : found.edges()) {
      begins.push_back(begin);
      ends.push_back(end);
    }
    std::size_t same = *count;
    give(begins, from, &same);
    return give(ends, to, count);
  });
}

CUresult cuGraphGetEdges_v2(CUgraph graph, CUgraphNode* from, CUgraphNode* to, CUgraphEdgeData* data,
                            std::size_t* count) {
  const CUresult result = cuGraphGetEdges(graph, from, to, count);
  if (result == CUDA_SUCCESS && data != nullptr) std::memset(data, 0, *count * sizeof *data);
  return result;
}

CUresult cuGraphNodeGetDependencies(CUgraphNode node, CUgraphNode* dependencies, std::size_t* count) {
  return with_node(node, [&](Process&, const std::shared_ptr<GraphNode>& found) {
    return give(handles_of(found->dependencies), dependencies, count);
  });
}

CUresult cuGraphNodeGetDependencies_v2(CUgraphNode node, CUgraphNode* dependencies, CUgraphEdgeData* data,
                                       std::size_t* count) {
  const CUresult result = cuGraphNodeGetDependencies(node, dependencies, count);
  if (result == CUDA_SUCCESS && data != nullptr) std::memset(data, 0, *count * sizeof *data);
  return result;
}

CUresult cuGraphAddDependencies(CUgraph graph, const CUgraphNode* from, const CUgraphNode* to,
                                std::size_t count) {
  return with_graph(graph, [&](Process&, Graph& found) {
    for (std::size_t i = 0; i < count; ++i) {
      if (!found.add_dependency(from[i], to[i])) return CUDA_ERROR_INVALID_VALUE;
    }
    return CUDA_SUCCESS;
  });
}

CUresult cuGraphAddDependencies_v2(CUgraph graph, const CUgraphNode* from, const CUgraphNode* to,
                                   const CUgraphEdgeData* data, std::size_t count) {
  if (!are_plain(data, count)) return CUDA_ERROR_NOT_SUPPORTED;
  return cuGraphAddDependencies(graph, from, to, count);
}

CUresult cuGraphRemoveDependencies(CUgraph graph, const CUgraphNode* from, const CUgraphNode* to,
                                   std::size_t count) {
  return with_graph(graph, [&](Process&, Graph& found) {
    for (std::size_t i = 0; i < count; ++i) {
      if (!found.remove_dependency(from[i], to[i])) return CUDA_ERROR_INVALID_VALUE;
    }
    return CUDA_SUCCESS;
  });
}

}  // extern "C"
