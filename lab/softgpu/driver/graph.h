// SPDX-License-Identifier: Apache-2.0
/// Graphs: nodes and what each waits for. As the real driver's they are for one thread at a time.
#pragma once

#include <cstddef>
#include <memory>
#include <mutex>
#include <optional>
#include <utility>
#include <vector>

#include "softgpu/driver/graph_node.h"

namespace firebreak::softgpu::driver {

class GraphNode;
using GraphNodes = std::vector<std::shared_ptr<GraphNode>>;

class GraphNode {
 public:
  GraphNode(Graph* graph, NodeContent of) : content(std::move(of)), graph_(graph) {}
  CUgraphNode handle() { return reinterpret_cast<CUgraphNode>(this); }
  /// Null: it was destroyed, or its graph was.
  Graph* graph() const { return graph_; }
  void leave() { graph_ = nullptr; }
  /// The arguments of a kernel as the driver shows them: valid until the node goes or changes.
  void** parameters();
  void** extra();

  NodeContent content;
  GraphNodes dependencies;

 private:
  Graph* graph_;
  std::vector<void*> shown_;
  std::size_t shown_bytes_ = 0;
};

/// Thread safe, so that a stream that is captured may be given work by any thread.
class Graph {
 public:
  Graph() = default;
  Graph(const Graph&) = delete;
  Graph& operator=(const Graph&) = delete;
  ~Graph();

  CUgraph handle() { return reinterpret_cast<CUgraph>(this); }
  std::shared_ptr<GraphNode> add(NodeContent content, const GraphNodes& dependencies);
  /// Removes a node, also from what others wait for.
  void remove(const std::shared_ptr<GraphNode>& node);
  /// Returns the nodes in the order in which they came.
  GraphNodes nodes() const;
  std::shared_ptr<GraphNode> find(const void* node) const;
  /// False: these are no nodes of it, or they wait for each other already.
  bool add_dependency(const void* from, const void* to);
  bool remove_dependency(const void* from, const void* to);
  std::vector<std::pair<CUgraphNode, CUgraphNode>> edges() const;
  /// Nobody waits for them.
  GraphNodes leaves() const;
  /// The same again, with nodes in the same order.
  std::shared_ptr<Graph> clone() const;
  /// Returns each node after all that it waits for; among those that could be next, the last one that came:
  /// so a user that forgets that something waits sees it. Empty: there is a circle.
  std::optional<GraphNodes> in_some_order() const;

 private:
  mutable std::mutex mutex_;
  GraphNodes nodes_;
};

/// The result of cuGraphInstantiate: it does not change with its graph.
struct GraphExec {
  struct Entry {
    CUgraphNode node;  ///< node of the graph that it was made of
    NodeContent content;
    bool is_enabled = true;
  };
  std::mutex mutex;  ///< guards what follows
  std::vector<Entry> entries;
  unsigned long long flags = 0;
};

}  // namespace firebreak::softgpu::driver
