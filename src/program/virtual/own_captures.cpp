// SPDX-License-Identifier: Apache-2.0
/// Streams are captured in the instance that works. Nobody is moved meanwhile.
#include "program/virtual/calls.h"

namespace firebreak::virtual_driver::own {
namespace {

/// What the program waits for in a capture is nothing that may hold a move up: the gate is open, and whoever
/// moves looks whether there is a capture.
template <class Begin>
CUresult begin(const OwnCall& call, CUstream stream, Begin begin_one) {
  return call.all.call([&](const Turn& turn) {
    const auto beginning = call.all.graphs().lock_beginning();
    const CUresult result = begin_one(turn.driver, turn.objects.translate(stream, turn.slot));
    if (result == CUDA_SUCCESS) call.all.graphs().capture_begins(stream, call.per_thread);
    return result;
  });
}

}  // namespace

CUresult cuStreamBeginCapture(const OwnCall& call, CUstream stream) {
  return begin(call, stream, [&](const cuda::Backend& driver, CUstream own) {
    return call.which(driver.cuStreamBeginCapture, driver.cuStreamBeginCapture_ptsz)(own);
  });
}

CUresult cuStreamBeginCapture_v2(const OwnCall& call, CUstream stream, CUstreamCaptureMode mode) {
  return begin(call, stream, [&](const cuda::Backend& driver, CUstream own) {
    return call.which(driver.cuStreamBeginCapture_v2, driver.cuStreamBeginCapture_v2_ptsz)(own, mode);
  });
}

/// JAX makes its command buffers so. Nobody reads the graph before it is whole.
CUresult cuStreamBeginCaptureToGraph(const OwnCall& call, CUstream stream, CUgraph graph,
                                     const CUgraphNode* dependencies, const CUgraphEdgeData* edges,
                                     std::size_t count, CUstreamCaptureMode mode) {
  return call.all.call([&](const Turn& turn) {
    const auto beginning = call.all.graphs().lock_beginning();
    const auto lock = call.all.graphs().lock();
    Nodes<const CUgraphNode> after(turn, dependencies, dependencies == nullptr ? 0 : count);
    const auto begin_one =
        call.which(turn.driver.cuStreamBeginCaptureToGraph, turn.driver.cuStreamBeginCaptureToGraph_ptsz);
    const CUresult result = begin_one(turn.objects.translate(stream, turn.slot),
                                      turn.objects.translate(graph, turn.slot), after, edges, count, mode);
    if (result == CUDA_SUCCESS) call.all.graphs().capture_begins(stream, call.per_thread, graph);
    return result;
  });
}

/// It may end the capture although it answers an error.
CUresult cuStreamEndCapture(const OwnCall& call, CUstream stream, CUgraph* graph) {
  const CUresult result = call.all.call([&](const Turn& turn) {
    const CUstream own = turn.objects.translate(stream, turn.slot);
    const auto end = call.which(turn.driver.cuStreamEndCapture, turn.driver.cuStreamEndCapture_ptsz);
    const CUresult ended = end(own, graph);
    CUstreamCaptureStatus status = CU_STREAM_CAPTURE_STATUS_NONE;
    const auto ask = call.which(turn.driver.cuStreamIsCapturing, turn.driver.cuStreamIsCapturing_ptsz);
    Graphs& graphs = call.all.graphs();
    const bool is_over = ask(own, &status) != CUDA_SUCCESS || status == CU_STREAM_CAPTURE_STATUS_NONE;
    const CUgraph into = is_over ? graphs.capture_ends(stream, call.per_thread) : nullptr;
    if (turn.slot == anchor) return ended;
    if (is_over) take_up_put_off(call, turn);
    const auto lock = graphs.lock();
    if (into != nullptr) graphs.changed(turn, into);
    if (ended != CUDA_SUCCESS || *graph == nullptr) return ended;
    *graph = into != nullptr ? into : graphs.add_graph(turn, *graph);
    return ended;
  });
  call.all.something_new();  // a move may have waited for that
  return result;
}

CUresult cuThreadExchangeStreamCaptureMode(const OwnCall& call, CUstreamCaptureMode* mode) {
  return call.all.call([&](const Turn& turn) {
    const CUstreamCaptureMode wanted = mode == nullptr ? CU_STREAM_CAPTURE_MODE_GLOBAL : *mode;
    const CUresult result = turn.driver.cuThreadExchangeStreamCaptureMode(mode);
    if (result == CUDA_SUCCESS) current().capture_mode = there_in(turn.instance).capture_mode = wanted;
    return result;
  });
}

}  // namespace firebreak::virtual_driver::own
