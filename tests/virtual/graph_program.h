// SPDX-License-Identifier: Apache-2.0
/// A program's graphs, one kind at a time: how each is made is what a real program does.
#pragma once

#include <array>
#include <atomic>
#include <cstdint>
#include <string>
#include <utility>

#include "program/cuda/backend.h"

namespace firebreak::test {

/// For one thread, with a context current on it.
class GraphProgram {
 public:
  explicit GraphProgram(const cuda::Backend& driver) : driver_(driver) {}

  struct Answer {
    CUresult result = CUDA_SUCCESS;
    unsigned long long value = 0;
  };

  /// Captures or builds a graph of that kind, and makes an executable of it. Its graph goes, but of kinds
  /// that are asked for their nodes later.
  CUresult make(const std::string& kind);
  /// The same, in two parts: a move may be wanted in between.
  CUresult begin();
  CUresult end();
  /// Gives the executable other parameters.
  CUresult change(const std::string& how);
  /// Runs it once, and waits. The answer is a digest of all that it may have changed.
  Answer launch();
  /// How many nodes and dependencies the graph has that was kept.
  Answer count_nodes();
  /// Whether its kernel is to be run: 0 or 1.
  Answer is_enabled();
  /// The executable goes, and one is made of the graph that was kept.
  CUresult make_again();
  CUresult destroy();
  /// The executable stays.
  CUresult destroy_graph() { return driver_.cuGraphDestroy(std::exchange(graph_, nullptr)); }

 private:
  CUresult prepare();
  CUresult fill_graph(const std::string& kind);
  CUresult capture(const std::string& kind);
  CUresult capture_into_graph(std::uint32_t value);
  CUresult capture_mix(CUdeviceptr words, std::uint32_t value, CUstream stream);
  CUresult capture_in_one_piece();
  CUresult capture_with_attributes();
  CUresult capture_copies();
  CUresult capture_fork();
  CUresult capture_events();
  CUresult build(CUgraph graph, std::uint32_t value, bool with_child);
  CUresult build_child(CUgraphNode after);
  CUresult build_any_type(bool gives_child_away);
  CUresult change_any_type();
  CUresult update_in_order();
  CUresult turn_off_what_is_gone();
  CUresult instantiate(const std::string& kind);
  CUresult set_kernel(std::uint32_t value);
  CUresult launch_with_events();
  CUresult launch_between_events(bool& is_second);

  cuda::Backend driver_;
  CUmodule module_ = nullptr;
  CUfunction mix_ = nullptr;
  CUfunction nothing_ = nullptr;
  CUcontext context_ = nullptr;
  CUstream stream_ = nullptr;
  CUstream other_stream_ = nullptr;
  CUevent event_ = nullptr;
  CUevent other_event_ = nullptr;
  std::array<CUevent, 2> timed_{};
  CUdeviceptr words_ = 0;
  CUdeviceptr other_words_ = 0;
  std::uint32_t* pinned_ = nullptr;
  std::string kind_;  ///< of the graph that was made last
  std::atomic<bool> is_released_{false};
  CUgraph graph_ = nullptr;
  CUgraphExec exec_ = nullptr;
  CUgraphNode kernel_node_ = nullptr;
  CUgraphNode copy_node_ = nullptr;
  CUgraphNode fill_node_ = nullptr;
  CUgraphNode child_node_ = nullptr;
  CUgraphNode wait_node_ = nullptr;
  CUgraphNode record_node_ = nullptr;
  CUgraphNode host_node_ = nullptr;
  std::atomic<std::uint32_t> host_runs_{0};
};

}  // namespace firebreak::test
