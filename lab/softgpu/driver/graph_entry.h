// SPDX-License-Identifier: Apache-2.0
/// The beginning of entry points of graphs.
#pragma once

#include <memory>
#include <utility>

#include "softgpu/driver/entry.h"
#include "softgpu/driver/graph.h"

namespace firebreak::softgpu::driver {

template <class Action>
CUresult with_graph(CUgraph graph, Action&& action) {
  return with_live_process([&](Process& process) {
    const auto found = process.graphs().find(graph);
    return found ? std::forward<Action>(action)(process, *found) : CUDA_ERROR_INVALID_VALUE;
  });
}

/// Finds a node of any graph that the program has. Null: there is none.
inline std::shared_ptr<GraphNode> find_node(Process& process, CUgraphNode node) {
  for (const auto& graph : process.graphs().all()) {
    if (auto found = graph->find(node)) return found;
  }
  return nullptr;
}

template <class Action>
CUresult with_node(CUgraphNode node, Action&& action) {
  return with_live_process([&](Process& process) {
    const auto found = find_node(process, node);
    return found ? std::forward<Action>(action)(process, found) : CUDA_ERROR_INVALID_VALUE;
  });
}

/// A node of that kind.
template <class Kind, class Action>
CUresult with_node_of(CUgraphNode node, Action&& action) {
  return with_node(node, [&](Process& process, const std::shared_ptr<GraphNode>& found) {
    auto* const kind = std::get_if<Kind>(&found->content.is);
    return kind == nullptr ? CUDA_ERROR_INVALID_VALUE : std::forward<Action>(action)(process, *found, *kind);
  });
}

}  // namespace firebreak::softgpu::driver
