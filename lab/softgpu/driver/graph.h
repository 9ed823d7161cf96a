// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <mutex>
#include <vector>

#include "softgpu/driver/work.h"

namespace firebreak::softgpu::driver {

/// What one stream was given while it was captured, in that order. Thread safe.
class Graph {
 public:
  Graph() = default;
  Graph(const Graph& other) : nodes_(other.nodes()) {}
  Graph& operator=(const Graph&) = delete;

  void add(const Work& work) {
    const std::lock_guard lock(mutex_);
    nodes_.push_back(work.again());
  }
  std::vector<Work> nodes() const {
    const std::lock_guard lock(mutex_);
    std::vector<Work> all;
    for (const Work& node : nodes_) all.push_back(node.again());
    return all;
  }

 private:
  mutable std::mutex mutex_;
  std::vector<Work> nodes_;
};

}  // namespace firebreak::softgpu::driver
