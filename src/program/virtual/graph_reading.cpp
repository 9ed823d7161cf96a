// SPDX-License-Identifier: Apache-2.0
/// From a driver's graph to what it does.
#include <algorithm>
#include <array>
#include <cstring>
#include <unordered_map>

#include "program/virtual/graph_content.h"

namespace firebreak::virtual_driver {
namespace {

constexpr const char* why_driver = "";  ///< the driver has failed: there is no reason to tell

/// The driver may have resolved what was launched to a function that nobody was given.
Object* code_of(const GraphSource& source, CUfunction own, std::uintptr_t context) {
  Objects& objects = source.objects;
  if (Object* const known = objects.find_own(Family::Code, number_of(own), source.slot)) return known;
  CUmodule module = nullptr;
  const char* text = nullptr;
  if (source.driver.cuFuncGetModule(&module, own) != CUDA_SUCCESS ||
      source.driver.cuFuncGetName(&text, own) != CUDA_SUCCESS || text == nullptr)
    return nullptr;
  const std::string name = text;
  if (Object* const of = objects.find_own(Family::Module, number_of(module), source.slot)) {
    const auto again = [name, of](Making& making) {
      const auto there = reinterpret_cast<CUmodule>(of->in[making.slot].load());
      return making.driver.cuModuleGetFunction(reinterpret_cast<CUfunction*>(&making.made), there,
                                               name.c_str());
    };
    return &objects.add(Family::Code, number_of(own), source.slot, {{{}, again, context}}, {of, context});
  }
  Object* library = nullptr;
  objects.for_each(Family::Library, [&](Object& each) {
    CUmodule of = nullptr;
    const auto there = reinterpret_cast<CUlibrary>(each.in[source.slot].load());
    if (source.driver.cuLibraryGetModule(&of, there) == CUDA_SUCCESS && of == module) library = &each;
  });
  if (library == nullptr) return nullptr;
  const auto again = [name, library](Making& making) {
    CUkernel kernel = nullptr;
    const auto there = reinterpret_cast<CUlibrary>(library->in[making.slot].load());
    const CUresult found = making.driver.cuLibraryGetKernel(&kernel, there, name.c_str());
    if (found != CUDA_SUCCESS) return found;
    return making.driver.cuKernelGetFunction(reinterpret_cast<CUfunction*>(&making.made), kernel);
  };
  return &objects.add(Family::Code, number_of(own), source.slot, {{{}, again, context}}, {library, context});
}

const char* read_pieces(void** extra, GraphNodeContent& into) {
  const auto piece = arguments_in_one_piece(extra);
  if (!piece) return "it has a graph, and its kernels' parameters are not known";
  into.in_one_piece = true;
  into.arguments = {std::string(reinterpret_cast<const char*>(piece->data()), piece->size())};
  return nullptr;
}

/// What a kernel stores of such an address leads nowhere in the next instance.
bool holds_address(const GraphSource& source, const GraphNodeContent& node) {
  return source.taken.any() && std::ranges::any_of(node.arguments, [&](const std::string& bytes) {
           return ArgumentAddresses::in_words(bytes.data(), bytes.size(), source.slot, source.taken) !=
                  ArgumentAddresses::Give::NoAddress;
         });
}

/// Those that are not as a new node has them are set there.
const char* read_attributes(const GraphSource& source, CUgraphNode node, GraphNodeContent& into) {
  constexpr std::array kept{CU_LAUNCH_ATTRIBUTE_ACCESS_POLICY_WINDOW,
                            CU_LAUNCH_ATTRIBUTE_COOPERATIVE,
                            CU_LAUNCH_ATTRIBUTE_CLUSTER_DIMENSION,
                            CU_LAUNCH_ATTRIBUTE_CLUSTER_SCHEDULING_POLICY_PREFERENCE,
                            CU_LAUNCH_ATTRIBUTE_PRIORITY,
                            CU_LAUNCH_ATTRIBUTE_MEM_SYNC_DOMAIN_MAP,
                            CU_LAUNCH_ATTRIBUTE_MEM_SYNC_DOMAIN,
                            CU_LAUNCH_ATTRIBUTE_PREFERRED_CLUSTER_DIMENSION,
                            CU_LAUNCH_ATTRIBUTE_PREFERRED_SHARED_MEMORY_CARVEOUT};
  constexpr std::array refused{CU_LAUNCH_ATTRIBUTE_PROGRAMMATIC_EVENT,
                               CU_LAUNCH_ATTRIBUTE_LAUNCH_COMPLETION_EVENT,
                               CU_LAUNCH_ATTRIBUTE_DEVICE_UPDATABLE_KERNEL_NODE};
  for (const CUkernelNodeAttrID each : kept) {
    CUlaunchAttributeValue value{};
    if (source.driver.cuGraphKernelNodeGetAttribute(node, each, &value) == CUDA_SUCCESS)
      into.attributes.emplace_back(each, value);
  }
  for (const CUkernelNodeAttrID each : refused) {
    CUlaunchAttributeValue value{};
    if (source.driver.cuGraphKernelNodeGetAttribute(node, each, &value) != CUDA_SUCCESS) continue;
    // An event, or whether it is so, stands first.
    if (value.programmaticEvent.event != nullptr)
      return "it has a graph whose kernels signal events or change the graph";
  }
  return nullptr;
}

const char* read_kernel_node(const GraphSource& source, CUgraphNode node, GraphNodeContent& into) {
  CUDA_KERNEL_NODE_PARAMS params{};
  const CUresult asked = source.driver.cuGraphKernelNodeGetParams_v2(node, &params);
  if (asked == CUDA_ERROR_NOT_FOUND) return "it has graphs, and the driver does not say what is in them";
  if (asked != CUDA_SUCCESS) return why_driver;
  const char* const why = read_kernel(source, params, into);
  return why != nullptr ? why : read_attributes(source, node, into);
}

/// A type of node that nobody makes again.
const char* why_refused(CUgraphNodeType type) {
  switch (type) {
    case CU_GRAPH_NODE_TYPE_EXT_SEMAS_SIGNAL:
    case CU_GRAPH_NODE_TYPE_EXT_SEMAS_WAIT:
      return "it has a graph with semaphores";
    case CU_GRAPH_NODE_TYPE_MEM_ALLOC:
    case CU_GRAPH_NODE_TYPE_MEM_FREE:
      return "it has a graph that allocates memory";
    case CU_GRAPH_NODE_TYPE_BATCH_MEM_OP:
      return "it has a graph that waits for memory";
    case CU_GRAPH_NODE_TYPE_CONDITIONAL:
      return "it has a graph with conditions";
    default:
      return "it has a graph with a node that is not known";
  }
}

const char* read_node(const GraphSource& source, CUgraphNode node, GraphNodeContent& into) {
  const cuda::Backend& driver = source.driver;
  if (driver.cuGraphNodeGetType(node, &into.type) != CUDA_SUCCESS) return why_driver;
  CUevent event = nullptr;
  switch (into.type) {
    case CU_GRAPH_NODE_TYPE_KERNEL:
      return read_kernel_node(source, node, into);
    case CU_GRAPH_NODE_TYPE_MEMCPY: {
      CUDA_MEMCPY3D copy{};
      if (driver.cuGraphMemcpyNodeGetParams(node, &copy) != CUDA_SUCCESS) return why_driver;
      return read_copy(source, copy, into);
    }
    case CU_GRAPH_NODE_TYPE_MEMSET: {
      CUDA_MEMSET_NODE_PARAMS fill{};
      if (driver.cuGraphMemsetNodeGetParams(node, &fill) != CUDA_SUCCESS) return why_driver;
      return read_fill(source, fill, into);
    }
    case CU_GRAPH_NODE_TYPE_HOST:  // the program's own function, with what it is given: the same here
      return driver.cuGraphHostNodeGetParams(node, &into.call) == CUDA_SUCCESS ? nullptr : why_driver;
    case CU_GRAPH_NODE_TYPE_GRAPH: {
      CUgraph child = nullptr;
      if (driver.cuGraphChildGraphNodeGetGraph(node, &child) != CUDA_SUCCESS) return why_driver;
      return read_child(source, child, into);
    }
    case CU_GRAPH_NODE_TYPE_EMPTY:
      return nullptr;
    case CU_GRAPH_NODE_TYPE_WAIT_EVENT:
      if (driver.cuGraphEventWaitNodeGetEvent(node, &event) != CUDA_SUCCESS) return why_driver;
      return read_event(source, event, into);
    case CU_GRAPH_NODE_TYPE_EVENT_RECORD:
      if (driver.cuGraphEventRecordNodeGetEvent(node, &event) != CUDA_SUCCESS) return why_driver;
      return read_event(source, event, into);
    default:
      return why_refused(into.type);
  }
}

using Places = std::unordered_map<CUgraphNode, std::size_t>;

const char* read_dependencies(const GraphSource& source, CUgraphNode node, const Places& places,
                              GraphNodeContent& into) {
  const cuda::Backend& driver = source.driver;
  std::size_t count = 0;
  const bool has_data = cuda::is_there(driver.cuGraphNodeGetDependencies_v2);
  const auto ask = [&](CUgraphNode* nodes, CUgraphEdgeData* data) {
    return has_data ? driver.cuGraphNodeGetDependencies_v2(node, nodes, data, &count)
                    : driver.cuGraphNodeGetDependencies(node, nodes, &count);
  };
  if (ask(nullptr, nullptr) != CUDA_SUCCESS) return why_driver;
  std::vector<CUgraphNode> nodes(count);
  std::vector<CUgraphEdgeData> data(count);
  if (count != 0 && ask(nodes.data(), data.data()) != CUDA_SUCCESS) return why_driver;
  for (std::size_t i = 0; i < count; ++i) {
    const auto place = places.find(nodes[i]);
    if (place == places.end()) return why_driver;
    into.dependencies.push_back({place->second, data[i]});
  }
  return nullptr;
}

}  // namespace

const char* read_kernel(const GraphSource& source, const CUDA_KERNEL_NODE_PARAMS& params,
                        GraphNodeContent& into) {
  const CUfunction own = params.func != nullptr ? params.func : reinterpret_cast<CUfunction>(params.kern);
  const std::uintptr_t context = source.context == nullptr ? 0 : source.context->seen;
  into.code = code_of(source, own, context);
  if (into.code == nullptr) return "it has a graph with a kernel that is not known";
  into.kernel = params;
  into.context = source.objects.find_own(Family::Context, number_of(params.ctx), source.slot);
  into.in_one_piece = false;
  into.arguments.clear();
  if (params.extra != nullptr) {
    if (const char* const why = read_pieces(params.extra, into); why != nullptr) return why;
  } else {
    const auto* const layout = source.arguments.layout_of(source.driver, *into.code, own);
    const bool are_shown = layout != nullptr && (layout->empty() || params.kernelParams != nullptr);
    if (!are_shown) return "it has a graph, and its kernels' parameters are not known";
    for (std::size_t i = 0; i < layout->size(); ++i)
      into.arguments.emplace_back(static_cast<const char*>(params.kernelParams[i]), (*layout)[i].size_bytes);
  }
  return holds_address(source, into) ? "it gives a kernel the address of a variable" : nullptr;
}

const char* read_copy(const GraphSource& source, const CUDA_MEMCPY3D& copy, GraphNodeContent& into) {
  if (copy.srcMemoryType == CU_MEMORYTYPE_ARRAY || copy.dstMemoryType == CU_MEMORYTYPE_ARRAY)
    return "it has a graph that copies arrays";
  into.copy = copy;
  into.copy.srcDevice = source.taken.seen_of(copy.srcDevice, source.slot);
  into.copy.dstDevice = source.taken.seen_of(copy.dstDevice, source.slot);
  source.taken.translate_for_use(into.copy.dstDevice, source.slot);
  return nullptr;
}

const char* read_fill(const GraphSource& source, const CUDA_MEMSET_NODE_PARAMS& fill,
                      GraphNodeContent& into) {
  into.fill = fill;
  into.fill.dst = source.taken.seen_of(fill.dst, source.slot);
  source.taken.translate_for_use(into.fill.dst, source.slot);
  return nullptr;
}

const char* read_event(const GraphSource& source, CUevent event, GraphNodeContent& into) {
  into.event = source.objects.find_own(Family::Event, number_of(event), source.slot);
  if (into.event != nullptr) into.event->is_kept.store(true);
  return into.event == nullptr ? "it has a graph with an event that is not known" : nullptr;
}

const char* read_child(const GraphSource& source, CUgraph child, GraphNodeContent& into) {
  GraphReading reading = read_graph(source, child);
  into.child = std::move(reading.content);
  return into.child != nullptr ? nullptr : reading.why == nullptr ? why_driver : reading.why;
}

const char* read_params(const GraphSource& source, const CUgraphNodeParams& params, GraphNodeContent& into) {
  switch (params.type) {
    case CU_GRAPH_NODE_TYPE_KERNEL:
      return read_kernel(source, params.kernel, into);
    case CU_GRAPH_NODE_TYPE_MEMCPY:
      return read_copy(source, params.memcpy.copyParams, into);
    case CU_GRAPH_NODE_TYPE_MEMSET: {
      const CUDA_MEMSET_NODE_PARAMS_v2& fill = params.memset;
      return read_fill(source, {fill.dst, fill.pitch, fill.value, fill.elementSize, fill.width, fill.height},
                       into);
    }
    case CU_GRAPH_NODE_TYPE_HOST:
      into.call = params.host;
      return nullptr;
    case CU_GRAPH_NODE_TYPE_GRAPH:
      return read_child(source, params.graph.graph, into);
    case CU_GRAPH_NODE_TYPE_EMPTY:
      return nullptr;
    case CU_GRAPH_NODE_TYPE_WAIT_EVENT:
      return read_event(source, params.eventWait.event, into);
    case CU_GRAPH_NODE_TYPE_EVENT_RECORD:
      return read_event(source, params.eventRecord.event, into);
    default:
      return why_refused(params.type);
  }
}

GraphReading read_graph(const GraphSource& source, CUgraph graph) {
  std::size_t count = 0;
  if (source.driver.cuGraphGetNodes(graph, nullptr, &count) != CUDA_SUCCESS) return {};
  std::vector<CUgraphNode> nodes(count);
  if (count != 0 && source.driver.cuGraphGetNodes(graph, nodes.data(), &count) != CUDA_SUCCESS) return {};
  Places places;
  for (std::size_t i = 0; i < count; ++i) places[nodes[i]] = i;
  auto content = std::make_shared<GraphContent>();
  content->context = source.context;
  content->nodes.resize(count);
  for (std::size_t i = 0; i < count; ++i) {
    GraphNodeContent& node = content->nodes[i];
    node.seen = number_of(nodes[i]);
    const char* why = read_node(source, nodes[i], node);
    if (why == nullptr) why = read_dependencies(source, nodes[i], places, node);
    if (why != nullptr) return {nullptr, why == why_driver ? nullptr : why};
  }
  return {std::move(content)};
}

}  // namespace firebreak::virtual_driver
