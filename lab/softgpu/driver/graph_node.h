// SPDX-License-Identifier: Apache-2.0
/// The act of one node of a graph, as the program gave it to a captured stream or to a cuGraphAdd function.
#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <variant>
#include <vector>

#include "shared/abi/cuda_arrays.h"
#include "shared/abi/cuda_graphs.h"
#include "softgpu/driver/work.h"

namespace firebreak::softgpu::driver {

class Graph;

/// Its function is looked for at each launch: who unloads it has a graph that cannot run.
struct KernelNode {
  CUfunction function = nullptr;
  CUcontext context = nullptr;  ///< the function's
  std::uint32_t grid[3] = {1, 1, 1};
  std::uint32_t block[3] = {1, 1, 1};
  std::uint32_t shared_bytes = 0;
  std::vector<std::byte> parameters;  ///< packed, as the kernel takes them
  std::vector<std::size_t> offsets;   ///< offset of each, in bytes
  bool in_one_piece = false;          ///< true: `extra` gave them
  std::map<int, CUlaunchAttributeValue> attributes;
};
struct MemcpyNode {
  CUDA_MEMCPY3D copy;
};
struct MemsetNode {
  CUDA_MEMSET_NODE_PARAMS fill;
};
struct HostNode {
  CUDA_HOST_NODE_PARAMS call;
};
struct EmptyNode {};
struct EventRecordNode {
  CUevent event;
};
struct EventWaitNode {
  CUevent event;
};
struct ChildGraphNode {
  std::shared_ptr<Graph> graph;
};
/// A node that can only be done: nobody can ask what it is.
struct OtherNode {
  CUgraphNodeType type;
  Work work;
};

struct NodeContent {
  std::variant<EmptyNode, KernelNode, MemcpyNode, MemsetNode, HostNode, EventRecordNode, EventWaitNode,
               ChildGraphNode, OtherNode>
      is;
  CUgraphNodeType type() const;
};

}  // namespace firebreak::softgpu::driver
