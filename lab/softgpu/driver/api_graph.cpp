// SPDX-License-Identifier: Apache-2.0
/// Entry points: streams that are captured, and graphs as a whole. Their nodes are in api_graph_nodes.cpp.
#include <memory>
#include <utility>

#include "softgpu/driver/entry.h"
#include "softgpu/driver/graph_entry.h"
#include "softgpu/driver/graph_launch.h"

using namespace firebreak::softgpu::driver;

namespace {

/// The dependencies of a captured stream, as the driver shows them: until the thread asks again.
std::vector<CUgraphNode>& shown_dependencies() {
  thread_local std::vector<CUgraphNode> shown;
  return shown;
}

struct CaptureInfo {
  CUstreamCaptureStatus* status;
  std::uint64_t* id;
  CUgraph* graph;
  const CUgraphNode** dependencies;
  std::size_t* dependency_count;
};

CUresult tell(const Stream& target, const CaptureInfo& info) {
  if (info.status == nullptr) return CUDA_ERROR_INVALID_VALUE;
  const CapturePlace place = target.capture_place();
  *info.status = CU_STREAM_CAPTURE_STATUS_NONE;
  if (!place.capture) return CUDA_SUCCESS;
  const bool is_valid = place.capture->is_valid.load();
  *info.status = is_valid ? CU_STREAM_CAPTURE_STATUS_ACTIVE : CU_STREAM_CAPTURE_STATUS_INVALIDATED;
  if (!is_valid) return CUDA_SUCCESS;
  if (info.id != nullptr) *info.id = place.capture->id;
  if (info.graph != nullptr) *info.graph = place.capture->graph->handle();
  auto& shown = shown_dependencies();
  shown.clear();
  for (const auto& node : place.after) shown.push_back(node->handle());
  if (info.dependencies != nullptr) *info.dependencies = shown.data();
  if (info.dependency_count != nullptr) *info.dependency_count = shown.size();
  return CUDA_SUCCESS;
}

CUresult make_executable(Process& process, CUgraph graph, CUgraphExec* executable, unsigned long long flags) {
  constexpr unsigned long long known =
      CUDA_GRAPH_INSTANTIATE_FLAG_AUTO_FREE_ON_LAUNCH | CUDA_GRAPH_INSTANTIATE_FLAG_UPLOAD |
      CUDA_GRAPH_INSTANTIATE_FLAG_DEVICE_LAUNCH | CUDA_GRAPH_INSTANTIATE_FLAG_USE_NODE_PRIORITY;
  const auto found = process.graphs().find(graph);
  if (!found || executable == nullptr || (flags & ~known) != 0) return CUDA_ERROR_INVALID_VALUE;
  const auto made = instantiate(*found, flags);
  if (!made) return made.error();
  *executable = reinterpret_cast<CUgraphExec>(process.graph_execs().add(*made));
  return CUDA_SUCCESS;
}

/// Nodes are matched in the order of execution, as both were put in it by the same rule.
CUresult update(Process& process, CUgraphExec executable, CUgraph graph, CUgraphExecUpdateResultInfo& info) {
  const auto exec = process.graph_execs().find(executable);
  const auto from = process.graphs().find(graph);
  if (!exec || !from) return CUDA_ERROR_INVALID_VALUE;
  const auto made = instantiate(*from, exec->flags);
  if (!made) return made.error();
  const std::lock_guard lock(exec->mutex);
  info = {CU_GRAPH_EXEC_UPDATE_SUCCESS, nullptr, nullptr};
  auto& entries = (*made)->entries;
  if (entries.size() != exec->entries.size()) info.result = CU_GRAPH_EXEC_UPDATE_ERROR_TOPOLOGY_CHANGED;
  for (std::size_t i = 0; i < entries.size() && info.result == CU_GRAPH_EXEC_UPDATE_SUCCESS; ++i) {
    if (entries[i].content.type() == exec->entries[i].content.type()) continue;
    info = {CU_GRAPH_EXEC_UPDATE_ERROR_NODE_TYPE_CHANGED, entries[i].node, nullptr};
  }
  if (info.result != CU_GRAPH_EXEC_UPDATE_SUCCESS) return CUDA_ERROR_GRAPH_EXEC_UPDATE_FAILURE;
  for (std::size_t i = 0; i < entries.size(); ++i) exec->entries[i].content = std::move(entries[i].content);
  return CUDA_SUCCESS;
}

}  // namespace

extern "C" {

// ---- Captures ----

CUresult cuStreamBeginCapture_v2(CUstream stream, CUstreamCaptureMode mode) {
  return with_stream(stream, [&](Process& process, Context&, const std::shared_ptr<Stream>& target) {
    // The legacy default stream cannot be captured.
    if (stream == nullptr) return CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED;
    return process.captures().begin(target, mode) ? CUDA_SUCCESS : CUDA_ERROR_ILLEGAL_STATE;
  });
}

CUresult cuStreamBeginCaptureToGraph(CUstream stream, CUgraph graph, const CUgraphNode* dependencies,
                                     const CUgraphEdgeData*, std::size_t count, CUstreamCaptureMode mode) {
  return with_stream(stream, [&](Process& process, Context&, const std::shared_ptr<Stream>& target) {
    if (stream == nullptr) return CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED;
    const auto into = process.graphs().find(graph);
    if (!into || (count > 0 && dependencies == nullptr)) return CUDA_ERROR_INVALID_VALUE;
    GraphNodes after;
    for (std::size_t i = 0; i < count; ++i) {
      after.push_back(into->find(dependencies[i]));
      if (!after.back()) return CUDA_ERROR_INVALID_VALUE;
    }
    return process.captures().begin(target, mode, into, after) ? CUDA_SUCCESS : CUDA_ERROR_ILLEGAL_STATE;
  });
}

CUresult cuThreadExchangeStreamCaptureMode(CUstreamCaptureMode* mode) {
  if (mode == nullptr) return CUDA_ERROR_INVALID_VALUE;
  std::swap(*mode, capture_mode_of_thread());
  return CUDA_SUCCESS;
}

CUresult cuStreamEndCapture(CUstream stream, CUgraph* graph) {
  return with_stream(stream, [&](Process& process, Context&, const std::shared_ptr<Stream>& target) {
    if (graph == nullptr) return CUDA_ERROR_INVALID_VALUE;
    auto [result, captured] = process.captures().end(target);
    *graph = captured ? captured->handle() : nullptr;
    if (captured && !process.graphs().find(*graph)) process.graphs().add(std::move(captured));
    return result;
  });
}

CUresult cuStreamIsCapturing(CUstream stream, CUstreamCaptureStatus* status) {
  return with_stream(stream, [&](Process&, Context&, const std::shared_ptr<Stream>& target) {
    return tell(*target, {status, nullptr, nullptr, nullptr, nullptr});
  });
}

CUresult cuStreamGetCaptureInfo(CUstream stream, CUstreamCaptureStatus* status, std::uint64_t* id) {
  return with_stream(stream, [&](Process&, Context&, const std::shared_ptr<Stream>& target) {
    return tell(*target, {status, id, nullptr, nullptr, nullptr});
  });
}

CUresult cuStreamGetCaptureInfo_v2(CUstream stream, CUstreamCaptureStatus* status, std::uint64_t* id,
                                   CUgraph* graph, const CUgraphNode** dependencies,
                                   std::size_t* dependency_count) {
  return with_stream(stream, [&](Process&, Context&, const std::shared_ptr<Stream>& target) {
    return tell(*target, {status, id, graph, dependencies, dependency_count});
  });
}

CUresult cuStreamGetCaptureInfo_v3(CUstream stream, CUstreamCaptureStatus* status, std::uint64_t* id,
                                   CUgraph* graph, const CUgraphNode** dependencies,
                                   const CUgraphEdgeData** edges, std::size_t* dependency_count) {
  if (edges != nullptr) *edges = nullptr;
  return cuStreamGetCaptureInfo_v2(stream, status, id, graph, dependencies, dependency_count);
}

CUresult cuStreamUpdateCaptureDependencies(CUstream stream, CUgraphNode* dependencies, std::size_t count,
                                           unsigned int flags) {
  return with_stream(stream, [&](Process&, Context&, const std::shared_ptr<Stream>& target) {
    const CapturePlace place = target->capture_place();
    if (!place.capture) return CUDA_ERROR_ILLEGAL_STATE;
    GraphNodes nodes;
    for (std::size_t i = 0; i < count; ++i) {
      nodes.push_back(place.capture->graph->find(dependencies[i]));
      if (!nodes.back()) return CUDA_ERROR_INVALID_VALUE;
    }
    target->wait_in_capture(nodes, flags == CU_STREAM_SET_CAPTURE_DEPENDENCIES);
    return CUDA_SUCCESS;
  });
}

// ---- Graphs ----

CUresult cuGraphCreate(CUgraph* graph, unsigned int flags) {
  return with_live_process([&](Process& process) {
    if (graph == nullptr || flags != 0) return CUDA_ERROR_INVALID_VALUE;
    *graph = reinterpret_cast<CUgraph>(process.graphs().add(std::make_shared<Graph>()));
    return CUDA_SUCCESS;
  });
}

CUresult cuGraphClone(CUgraph* clone, CUgraph graph) {
  return with_graph(graph, [&](Process& process, Graph& found) {
    if (clone == nullptr) return CUDA_ERROR_INVALID_VALUE;
    *clone = reinterpret_cast<CUgraph>(process.graphs().add(found.clone()));
    return CUDA_SUCCESS;
  });
}

CUresult cuGraphDestroy(CUgraph graph) {
  return with_live_process([&](Process& process) {
    return process.graphs().remove(graph) ? CUDA_SUCCESS : CUDA_ERROR_INVALID_VALUE;
  });
}

CUresult cuGraphInstantiateWithFlags(CUgraphExec* executable, CUgraph graph, unsigned long long flags) {
  if ((flags & CUDA_GRAPH_INSTANTIATE_FLAG_UPLOAD) != 0) return CUDA_ERROR_INVALID_VALUE;
  return with_live_process(
      [&](Process& process) { return make_executable(process, graph, executable, flags); });
}

CUresult cuGraphInstantiateWithParams(CUgraphExec* executable, CUgraph graph,
                                      CUDA_GRAPH_INSTANTIATE_PARAMS* params) {
  if (params == nullptr) return CUDA_ERROR_INVALID_VALUE;
  return with_live_process([&](Process& process) {
    params->hErrNode_out = nullptr;
    const CUresult made = make_executable(process, graph, executable, params->flags);
    params->result_out = static_cast<CUgraphInstantiateResult>(made == CUDA_SUCCESS ? 0 : 1);
    return made;
  });
}

CUresult cuGraphExecDestroy(CUgraphExec executable) {
  return with_live_process([&](Process& process) {
    return process.graph_execs().remove(executable) ? CUDA_SUCCESS : CUDA_ERROR_INVALID_VALUE;
  });
}

CUresult cuGraphExecUpdate_v2(CUgraphExec executable, CUgraph graph, CUgraphExecUpdateResultInfo* info) {
  if (info == nullptr) return CUDA_ERROR_INVALID_VALUE;
  return with_live_process([&](Process& process) { return update(process, executable, graph, *info); });
}

CUresult cuGraphUpload(CUgraphExec executable, CUstream stream) {
  return with_stream(stream, [&](Process& process, Context&, const std::shared_ptr<Stream>&) {
    return process.graph_execs().find(executable) ? CUDA_SUCCESS : CUDA_ERROR_INVALID_VALUE;
  });
}

CUresult cuGraphLaunch(CUgraphExec executable, CUstream stream) {
  return with_stream(stream, [&](Process& process, Context& context, const std::shared_ptr<Stream>& target) {
    const auto found = process.graph_execs().find(executable);
    return found ? launch(process, context, target, *found) : CUDA_ERROR_INVALID_VALUE;
  });
}

}  // extern "C"
