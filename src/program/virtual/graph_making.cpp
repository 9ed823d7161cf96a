// SPDX-License-Identifier: Apache-2.0
/// From what a graph does to the same graph in another instance.
#include <cstring>

#include "program/virtual/graph_content.h"

namespace firebreak::virtual_driver {
namespace {

constexpr CUresult is_gone = graph_is_gone;

/// Null: it is gone, or it was never made there.
std::uintptr_t there(const Object* object, Slot slot) {
  return object == nullptr || object->is_gone.load() ? 0 : object->in[slot].load();
}

struct Place {
  Making& making;
  TakenVariables& taken;
  CUcontext context;
  CUgraph graph;
};

CUresult add_kernel(const Place& place, const GraphNodeContent& node, const std::vector<CUgraphNode>& after,
                    CUgraphNode* made) {
  const cuda::Backend& driver = place.making.driver;
  const std::uintptr_t code = there(node.code, place.making.slot);
  if (code == 0) return is_gone;
  CUDA_KERNEL_NODE_PARAMS params = node.kernel;
  // A library's own is a kernel, and no context's; everything else of the family is a function.
  const bool is_kernel = node.code->origin.parent != nullptr &&
                         node.code->origin.parent->family == Family::Library &&
                         node.code->origin.context == 0;
  params.func = is_kernel ? nullptr : reinterpret_cast<CUfunction>(code);
  params.kern = is_kernel ? reinterpret_cast<CUkernel>(code) : nullptr;
  const std::uintptr_t context = there(node.context, place.making.slot);
  params.ctx = context == 0 ? place.context : reinterpret_cast<CUcontext>(context);
  std::vector<std::string> arguments = node.arguments;
  std::vector<void*> pointers;
  for (std::string& each : arguments) pointers.push_back(each.data());
  std::size_t size_bytes = node.in_one_piece ? arguments[0].size() : 0;
  void* extra[] = {reinterpret_cast<void*>(CU_LAUNCH_PARAM_BUFFER_POINTER_AS_INT),
                   node.in_one_piece ? pointers[0] : nullptr,
                   reinterpret_cast<void*>(CU_LAUNCH_PARAM_BUFFER_SIZE_AS_INT), &size_bytes,
                   reinterpret_cast<void*>(CU_LAUNCH_PARAM_END_AS_INT)};
  params.kernelParams = node.in_one_piece || pointers.empty() ? nullptr : pointers.data();
  params.extra = node.in_one_piece ? extra : nullptr;
  CUresult result = driver.cuGraphAddKernelNode_v2(made, place.graph, after.data(), after.size(), &params);
  for (const auto& [attribute, value] : node.attributes) {
    CUlaunchAttributeValue now{};
    if (result != CUDA_SUCCESS) break;
    const CUresult asked = driver.cuGraphKernelNodeGetAttribute(*made, attribute, &now);
    const bool is_same = asked == CUDA_SUCCESS && std::memcmp(&now, &value, sizeof value) == 0;
    if (!is_same) result = driver.cuGraphKernelNodeSetAttribute(*made, attribute, &value);
  }
  return result;
}

CUresult add_child(const Place& place, const GraphNodeContent& node, const std::vector<CUgraphNode>& after,
                   CUgraphNode* made) {
  MadeGraph child;
  CUresult result = make_graph(*node.child, place.making, place.taken, child);
  if (result != CUDA_SUCCESS) return result;
  result = place.making.driver.cuGraphAddChildGraphNode(made, place.graph, after.data(), after.size(),
                                                        child.graph);
  place.making.driver.cuGraphDestroy(child.graph);  // the node has one of its own
  return result;
}

/// The driver knows nothing at the address.
CUresult unless_freed(CUresult result) { return result == CUDA_ERROR_INVALID_VALUE ? is_gone : result; }

CUresult add_node(const Place& place, const GraphNodeContent& node, const std::vector<CUgraphNode>& after,
                  CUgraphNode* made) {
  const cuda::Backend& driver = place.making.driver;
  const Slot slot = place.making.slot;
  const auto event = reinterpret_cast<CUevent>(there(node.event, slot));
  switch (node.type) {
    case CU_GRAPH_NODE_TYPE_KERNEL:
      return add_kernel(place, node, after, made);
    case CU_GRAPH_NODE_TYPE_MEMCPY: {
      CUDA_MEMCPY3D copy = node.copy;
      copy.srcDevice = place.taken.translate(copy.srcDevice, slot);
      copy.dstDevice = place.taken.translate(copy.dstDevice, slot);
      return unless_freed(
          driver.cuGraphAddMemcpyNode(made, place.graph, after.data(), after.size(), &copy, place.context));
    }
    case CU_GRAPH_NODE_TYPE_MEMSET: {
      CUDA_MEMSET_NODE_PARAMS fill = node.fill;
      fill.dst = place.taken.translate(fill.dst, slot);
      return unless_freed(
          driver.cuGraphAddMemsetNode(made, place.graph, after.data(), after.size(), &fill, place.context));
    }
    case CU_GRAPH_NODE_TYPE_HOST:
      return driver.cuGraphAddHostNode(made, place.graph, after.data(), after.size(), &node.call);
    case CU_GRAPH_NODE_TYPE_GRAPH:
      return add_child(place, node, after, made);
    case CU_GRAPH_NODE_TYPE_WAIT_EVENT:
      if (event == nullptr) return is_gone;
      return driver.cuGraphAddEventWaitNode(made, place.graph, after.data(), after.size(), event);
    case CU_GRAPH_NODE_TYPE_EVENT_RECORD:
      if (event == nullptr) return is_gone;
      return driver.cuGraphAddEventRecordNode(made, place.graph, after.data(), after.size(), event);
    default:
      return driver.cuGraphAddEmptyNode(made, place.graph, after.data(), after.size());
  }
}

bool is_plain(const CUgraphEdgeData& data) {
  constexpr CUgraphEdgeData plain{};
  return std::memcmp(&data, &plain, sizeof plain) == 0;
}

/// What the node waits for may come with it where all of that is there, and nothing is said of how.
std::vector<CUgraphNode> after_of(const GraphNodeContent& node, std::size_t place, const MadeGraph& made) {
  std::vector<CUgraphNode> after;
  for (const auto& each : node.dependencies) {
    if (each.node >= place || !is_plain(each.data)) return {};
    after.push_back(made.nodes[each.node]);
  }
  return after;
}

CUresult add_dependencies(const cuda::Backend& driver, const MadeGraph& made, const GraphNodeContent& node,
                          std::size_t place) {
  for (const auto& each : node.dependencies) {
    const CUgraphNode from = made.nodes[each.node];
    const CUgraphNode to = made.nodes[place];
    const CUresult added = is_plain(each.data)
                               ? driver.cuGraphAddDependencies(made.graph, &from, &to, 1)
                               : driver.cuGraphAddDependencies_v2(made.graph, &from, &to, &each.data, 1);
    if (added != CUDA_SUCCESS) return added;
  }
  return CUDA_SUCCESS;
}

CUresult add_all(const GraphContent& content, const Place& place, MadeGraph& made) {
  std::vector<std::size_t> later;
  for (std::size_t i = 0; i < content.nodes.size(); ++i) {
    const GraphNodeContent& node = content.nodes[i];
    const std::vector<CUgraphNode> after = after_of(node, i, made);
    if (after.size() != node.dependencies.size()) later.push_back(i);
    CUgraphNode added = nullptr;
    CUresult result = add_node(place, node, after, &added);
    const bool is_empty = result == is_gone && !node.is_enabled;
    if (is_empty)
      result = place.making.driver.cuGraphAddEmptyNode(&added, place.graph, after.data(), after.size());
    if (result != CUDA_SUCCESS) return result;
    made.nodes.push_back(added);
    made.are_empty.push_back(is_empty);
  }
  for (const std::size_t i : later) {
    const CUresult result = add_dependencies(place.making.driver, made, content.nodes[i], i);
    if (result != CUDA_SUCCESS) return result;
  }
  return CUDA_SUCCESS;
}

}  // namespace

CUresult make_graph(const GraphContent& content, Making& making, TakenVariables& taken, MadeGraph& made) {
  const auto context = reinterpret_cast<CUcontext>(there(content.context, making.slot));
  if (context == nullptr && !content.nodes.empty()) return is_gone;
  making.driver.cuCtxSetCurrent(context);
  if (const CUresult result = making.driver.cuGraphCreate(&made.graph, 0); result != CUDA_SUCCESS)
    return result;
  const CUresult result = add_all(content, {making, taken, context, made.graph}, made);
  if (result == CUDA_SUCCESS) return result;
  making.driver.cuGraphDestroy(made.graph);
  made = {};
  return result;
}

}  // namespace firebreak::virtual_driver
