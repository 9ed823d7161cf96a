// SPDX-License-Identifier: Apache-2.0
/// Entry points: graphs, as streams record them.
#include <memory>
#include <utility>

#include "softgpu/driver/entry.h"
#include "softgpu/driver/graph.h"

using namespace firebreak::softgpu::driver;

namespace {

template <class Handle>
CUresult forget(Handle handle) {
  return with_live_process([&](Process& process) {
    return process.graphs().remove(handle) ? CUDA_SUCCESS : CUDA_ERROR_INVALID_VALUE;
  });
}

}  // namespace

extern "C" {

CUresult cuStreamBeginCapture_v2(CUstream stream, CUstreamCaptureMode mode) {
  return with_stream(stream, [&](Process& process, Context&, const std::shared_ptr<Stream>& target) {
    // The legacy default stream cannot be captured.
    if (stream == nullptr) return CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED;
    return process.captures().begin(target, mode) ? CUDA_SUCCESS : CUDA_ERROR_ILLEGAL_STATE;
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
    *graph = captured ? reinterpret_cast<CUgraph>(process.graphs().add(std::move(captured))) : nullptr;
    return result;
  });
}

CUresult cuStreamIsCapturing(CUstream stream, CUstreamCaptureStatus* status) {
  return with_stream(stream, [&](Process&, Context&, const std::shared_ptr<Stream>& target) {
    if (status == nullptr) return CUDA_ERROR_INVALID_VALUE;
    const auto active =
        target->is_capture_valid() ? CU_STREAM_CAPTURE_STATUS_ACTIVE : CU_STREAM_CAPTURE_STATUS_INVALIDATED;
    *status = target->is_captured() ? active : CU_STREAM_CAPTURE_STATUS_NONE;
    return CUDA_SUCCESS;
  });
}

CUresult cuGraphGetNodes(CUgraph graph, CUgraphNode* nodes, std::size_t* node_count) {
  return with_live_process([&](Process& process) {
    const auto found = process.graphs().find(graph);
    if (!found || node_count == nullptr) return CUDA_ERROR_INVALID_VALUE;
    if (nodes != nullptr) return CUDA_ERROR_NOT_SUPPORTED;  // none has a handle of its own
    *node_count = found->nodes().size();
    return CUDA_SUCCESS;
  });
}

CUresult cuGraphInstantiateWithFlags(CUgraphExec* executable, CUgraph graph, unsigned long long) {
  return with_live_process([&](Process& process) {
    auto found = process.graphs().find(graph);
    if (!found || executable == nullptr) return CUDA_ERROR_INVALID_VALUE;
    *executable = reinterpret_cast<CUgraphExec>(process.graphs().add(std::make_shared<Graph>(*found)));
    return CUDA_SUCCESS;
  });
}

CUresult cuGraphLaunch(CUgraphExec executable, CUstream stream) {
  return with_stream(stream, [&](Process& process, Context& context, const std::shared_ptr<Stream>& target) {
    const auto found = process.graphs().find(executable);
    if (!found) return CUDA_ERROR_INVALID_VALUE;
    for (Work& node : found->nodes()) context.submit(target, std::move(node));
    return CUDA_SUCCESS;
  });
}

CUresult cuGraphDestroy(CUgraph graph) { return forget(graph); }
CUresult cuGraphExecDestroy(CUgraphExec executable) { return forget(executable); }

}  // extern "C"
