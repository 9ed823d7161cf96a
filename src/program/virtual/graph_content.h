// SPDX-License-Identifier: Apache-2.0
/// What a graph of the program's does, as it is read from the driver that has it: enough to make the same
/// graph in another instance.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "program/virtual/argument_addresses.h"
#include "program/virtual/objects.h"
#include "program/virtual/taken_variables.h"
#include "shared/abi/cuda_arrays.h"
#include "shared/abi/cuda_graphs.h"

namespace firebreak::virtual_driver {

/// One node. Addresses are those that the program has; objects are ours.
struct GraphNodeContent {
  struct Dependency {
    std::size_t node;  ///< by its place in the graph
    CUgraphEdgeData data;
  };
  CUgraphNodeType type{};
  std::uintptr_t seen = 0;  ///< what the program calls it
  std::vector<Dependency> dependencies;
  bool is_enabled = true;  ///< in an executable

  // Of a kernel.
  Object* code = nullptr;
  Object* context = nullptr;  ///< of a kernel that is no function
  CUDA_KERNEL_NODE_PARAMS kernel{};
  std::vector<std::string> arguments;  ///< their bytes
  bool in_one_piece = false;           ///< one string has all of them
  std::vector<std::pair<CUkernelNodeAttrID, CUlaunchAttributeValue>> attributes;

  // Of the others: each has one of these.
  CUDA_MEMCPY3D copy{};
  CUDA_MEMSET_NODE_PARAMS fill{};
  CUDA_HOST_NODE_PARAMS call{};
  Object* event = nullptr;
  std::shared_ptr<const struct GraphContent> child;
};

/// Constant once it is read; any thread may look.
struct GraphContent {
  std::vector<GraphNodeContent> nodes;  ///< in the order in which they were made
  Object* context = nullptr;            ///< for copies and fills: the driver does not say in which they are
};

/// Who is asked.
struct GraphSource {
  const cuda::Backend& driver;
  Slot slot;
  Objects& objects;
  TakenVariables& taken;
  ArgumentAddresses& arguments;
  Object* context;  ///< for what the driver says no context of
};

struct GraphReading {
  std::shared_ptr<GraphContent> content;  ///< null: it cannot be made again
  const char* why = nullptr;              ///< then, a literal; null: the driver has failed
};

/// `graph` is what the driver calls it. Nobody else may use it meanwhile.
GraphReading read_graph(const GraphSource& source, CUgraph graph);

/// What a kernel node is given, in the source's terms. Its dependencies and attributes stay. Null: it can be
/// made again; else why not.
const char* read_kernel(const GraphSource& source, const CUDA_KERNEL_NODE_PARAMS& params,
                        GraphNodeContent& into);
/// The same of a copy and of a fill.
const char* read_copy(const GraphSource& source, const CUDA_MEMCPY3D& copy, GraphNodeContent& into);
const char* read_fill(const GraphSource& source, const CUDA_MEMSET_NODE_PARAMS& fill, GraphNodeContent& into);
const char* read_event(const GraphSource& source, CUevent event, GraphNodeContent& into);
const char* read_child(const GraphSource& source, CUgraph child, GraphNodeContent& into);
/// Of a node of the type that they name.
const char* read_params(const GraphSource& source, const CUgraphNodeParams& params, GraphNodeContent& into);

/// A graph that was made in another instance.
struct MadeGraph {
  CUgraph graph = nullptr;
  std::vector<CUgraphNode> nodes;  ///< in the order of the content
  std::vector<bool> are_empty;     ///< of a node that is off: what it would do is gone, and stands empty
};

/// What no driver answers to the calls that make graphs.
inline constexpr CUresult graph_is_gone = CUDA_ERROR_CONTEXT_IS_DESTROYED;

/// Makes it there. graph_is_gone: something in it is gone, so the program cannot use it now.
CUresult make_graph(const GraphContent& content, Making& making, TakenVariables& taken, MadeGraph& made);

}  // namespace firebreak::virtual_driver
