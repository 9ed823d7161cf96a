// SPDX-License-Identifier: Apache-2.0
#include "softgpu/driver/graph.h"

#include <algorithm>
#include <map>
#include <set>

namespace firebreak::softgpu::driver {

CUgraphNodeType NodeContent::type() const {
  struct Type {
    CUgraphNodeType operator()(const EmptyNode&) const { return CU_GRAPH_NODE_TYPE_EMPTY; }
    CUgraphNodeType operator()(const KernelNode&) const { return CU_GRAPH_NODE_TYPE_KERNEL; }
    CUgraphNodeType operator()(const MemcpyNode&) const { return CU_GRAPH_NODE_TYPE_MEMCPY; }
    CUgraphNodeType operator()(const MemsetNode&) const { return CU_GRAPH_NODE_TYPE_MEMSET; }
    CUgraphNodeType operator()(const HostNode&) const { return CU_GRAPH_NODE_TYPE_HOST; }
    CUgraphNodeType operator()(const EventRecordNode&) const { return CU_GRAPH_NODE_TYPE_EVENT_RECORD; }
    CUgraphNodeType operator()(const EventWaitNode&) const { return CU_GRAPH_NODE_TYPE_WAIT_EVENT; }
    CUgraphNodeType operator()(const ChildGraphNode&) const { return CU_GRAPH_NODE_TYPE_GRAPH; }
    CUgraphNodeType operator()(const OtherNode& other) const { return other.type; }
  };
  return std::visit(Type{}, is);
}

void** GraphNode::parameters() {
  auto& kernel = std::get<KernelNode>(content.is);
  if (kernel.in_one_piece) return nullptr;
  shown_.clear();
  for (const std::size_t offset : kernel.offsets) shown_.push_back(kernel.parameters.data() + offset);
  return shown_.data();
}

void** GraphNode::extra() {
  auto& kernel = std::get<KernelNode>(content.is);
  if (!kernel.in_one_piece) return nullptr;
  shown_bytes_ = kernel.parameters.size();
  shown_ = {reinterpret_cast<void*>(CU_LAUNCH_PARAM_BUFFER_POINTER_AS_INT), kernel.parameters.data(),
            reinterpret_cast<void*>(CU_LAUNCH_PARAM_BUFFER_SIZE_AS_INT), &shown_bytes_,
            reinterpret_cast<void*>(CU_LAUNCH_PARAM_END_AS_INT)};
  return shown_.data();
}

Graph::~Graph() {
  for (const auto& node : nodes_) {
    node->leave();
    node->dependencies.clear();
  }
}

std::shared_ptr<GraphNode> Graph::add(NodeContent content, const GraphNodes& dependencies) {
  const std::lock_guard lock(mutex_);
  auto node = std::make_shared<GraphNode>(this, std::move(content));
  for (const auto& each : dependencies) {
    if (std::ranges::find(node->dependencies, each) == node->dependencies.end())
      node->dependencies.push_back(each);
  }
  nodes_.push_back(node);
  return node;
}

void Graph::remove(const std::shared_ptr<GraphNode>& node) {
  const std::lock_guard lock(mutex_);
  std::erase(nodes_, node);
  for (const auto& each : nodes_) std::erase(each->dependencies, node);
  node->dependencies.clear();
  node->leave();
}

GraphNodes Graph::nodes() const {
  const std::lock_guard lock(mutex_);
  return nodes_;
}

std::shared_ptr<GraphNode> Graph::find(const void* node) const {
  const std::lock_guard lock(mutex_);
  const auto found = std::ranges::find_if(nodes_, [&](const auto& each) { return each.get() == node; });
  return found == nodes_.end() ? nullptr : *found;
}

bool Graph::add_dependency(const void* from, const void* to) {
  const auto first = find(from);
  const auto second = find(to);
  if (!first || !second || first == second) return false;
  const std::lock_guard lock(mutex_);
  if (std::ranges::find(second->dependencies, first) != second->dependencies.end()) return false;
  second->dependencies.push_back(first);
  return true;
}

bool Graph::remove_dependency(const void* from, const void* to) {
  const auto first = find(from);
  const auto second = find(to);
  const std::lock_guard lock(mutex_);
  return first && second && std::erase(second->dependencies, first) == 1;
}

std::vector<std::pair<CUgraphNode, CUgraphNode>> Graph::edges() const {
  const std::lock_guard lock(mutex_);
  std::vector<std::pair<CUgraphNode, CUgraphNode>> all;
  for (const auto& node : nodes_) {
    for (const auto& each : node->dependencies) all.emplace_back(each->handle(), node->handle());
  }
  return all;
}

GraphNodes Graph::leaves() const {
  const std::lock_guard lock(mutex_);
  std::set<const GraphNode*> waited_for;
  for (const auto& node : nodes_) {
    for (const auto& each : node->dependencies) waited_for.insert(each.get());
  }
  GraphNodes all;
  std::ranges::copy_if(nodes_, std::back_inserter(all),
                       [&](const auto& node) { return !waited_for.contains(node.get()); });
  return all;
}

std::shared_ptr<Graph> Graph::clone() const {
  const std::lock_guard lock(mutex_);
  auto made = std::make_shared<Graph>();
  std::map<const GraphNode*, std::shared_ptr<GraphNode>> clones;
  for (const auto& node : nodes_) {
    NodeContent content = node->content;
    if (auto* const child = std::get_if<ChildGraphNode>(&content.is)) child->graph = child->graph->clone();
    clones[node.get()] = made->add(std::move(content), {});
  }
  for (const auto& node : nodes_) {
    for (const auto& each : node->dependencies)
      clones[node.get()]->dependencies.push_back(clones[each.get()]);
  }
  return made;
}

std::optional<GraphNodes> Graph::in_some_order() const {
  const std::lock_guard lock(mutex_);
  GraphNodes left = nodes_;
  GraphNodes ordered;
  std::set<const GraphNode*> done;
  while (!left.empty()) {
    const auto next = std::find_if(left.rbegin(), left.rend(), [&](const auto& node) {
      return std::ranges::all_of(node->dependencies,
                                 [&](const auto& each) { return done.contains(each.get()); });
    });
    if (next == left.rend()) return std::nullopt;
    done.insert(next->get());
    ordered.push_back(*next);
    left.erase(std::next(next).base());
  }
  return ordered;
}

}  // namespace firebreak::softgpu::driver
