// SPDX-License-Identifier: Apache-2.0
/// Hooks for completion markers: streams, captures, and what makes handles mean something else.
#include "program/guard/preload/counting.h"
#include "program/guard/preload/hooks.h"

namespace firebreak::guard::hooks {
namespace {

CUresult after_creation(const Call& call, CUresult result, unsigned int flags) {
  CompletionMarkers* const markers = call.markers();
  if (markers != nullptr && result == CUDA_SUCCESS) markers->stream_created(flags);
  return result;
}

/// Whoever captures has a context: the guard is up by now.
template <class Begin>
CUresult begin_capture(const Call& call, CUstream stream, const Begin& begin) {
  CompletionMarkers* const markers = call.markers();
  Guard* const ours = call.guard_if_on();
  if (ours != nullptr)
    ours->capture_begins(stream);  // this comes before the first call that could make it
                                   // void
  const CUresult result = markers == nullptr ? begin() : markers->begin_capture(begin);
  if (ours != nullptr && result != CUDA_SUCCESS) ours->capture_ends(stream);
  return result;
}

/// Where nothing is counted yet, nothing has to be known to have ended.
template <class Wait>
CUresult wait_for_stream(const Call& call, CUstream stream, const Wait& wait_on) {
  CompletionMarkers* const markers = existing_markers();
  if (markers == nullptr) return wait_on();
  const auto thread = reinterpret_cast<WorkLog::Thread>(&known);
  return markers->wait_for_stream(thread, stream, call.per_thread, wait_on);
}

/// From the second context on the numbers tell no end anyway.
template <class Wait>
CUresult wait_for_all(const Wait& wait_on) {
  CompletionMarkers* const markers = existing_markers();
  return markers == nullptr ? wait_on() : markers->wait_for_all(wait_on);
}

}  // namespace

CUresult cuStreamCreate(const Call& call, CUstream* stream, unsigned int flags) {
  return after_creation(call, call.driver.cuStreamCreate(stream, flags), flags);
}

CUresult cuStreamCreateWithPriority(const Call& call, CUstream* stream, unsigned int flags, int priority) {
  return after_creation(call, call.driver.cuStreamCreateWithPriority(stream, flags, priority), flags);
}

CUresult cuStreamDestroy_v2(const Call& call, CUstream stream) {
  const auto destroy = [&] { return call.driver.cuStreamDestroy_v2(stream); };
  CompletionMarkers* const markers = call.markers();
  const CUresult result = markers == nullptr ? destroy() : markers->destroy_stream(stream, destroy);
  Guard* const ours = call.guard_if_on();
  if (ours != nullptr && result == CUDA_SUCCESS) ours->capture_ends(stream);
  forget_streams();
  return result;
}

CUresult cuStreamSynchronize(const Call& call, CUstream stream) {
  const auto wait_on = call.which(call.driver.cuStreamSynchronize, call.driver.cuStreamSynchronize_ptsz);
  return wait_for_stream(call, stream, [&] { return wait_on(stream); });
}

CUresult cuStreamQuery(const Call& call, CUstream stream) {
  const auto ask = call.which(call.driver.cuStreamQuery, call.driver.cuStreamQuery_ptsz);
  return wait_for_stream(call, stream, [&] { return ask(stream); });
}

CUresult cuCtxSynchronize(const Call& call) { return wait_for_all(call.driver.cuCtxSynchronize); }

CUresult cuCtxSynchronize_v2(const Call& call, CUcontext context) {
  return wait_for_all([&] { return call.driver.cuCtxSynchronize_v2(context); });
}

CUresult cuStreamBeginCapture_v2(const Call& call, CUstream stream, CUstreamCaptureMode mode) {
  const auto begin =
      call.which(call.driver.cuStreamBeginCapture_v2, call.driver.cuStreamBeginCapture_v2_ptsz);
  return begin_capture(call, stream, [&] { return begin(stream, mode); });
}

CUresult cuStreamBeginCaptureToGraph(const Call& call, CUstream stream, CUgraph graph,
                                     const CUgraphNode* dependencies, const CUgraphEdgeData* edges,
                                     std::size_t count, CUstreamCaptureMode mode) {
  const auto begin =
      call.which(call.driver.cuStreamBeginCaptureToGraph, call.driver.cuStreamBeginCaptureToGraph_ptsz);
  return begin_capture(call, stream, [&] { return begin(stream, graph, dependencies, edges, count, mode); });
}

CUresult cuStreamEndCapture(const Call& call, CUstream stream, CUgraph* graph) {
  const auto driver_end = call.which(call.driver.cuStreamEndCapture, call.driver.cuStreamEndCapture_ptsz);
  const auto end = [&] { return driver_end(stream, graph); };
  CompletionMarkers* const markers = call.markers();
  const CUresult result = markers == nullptr ? end() : markers->end_capture(end);
  const bool goes_on = result == CUDA_ERROR_STREAM_CAPTURE_WRONG_THREAD;
  if (Guard* const ours = call.guard_if_on(); ours != nullptr && !goes_on) ours->capture_ends(stream);
  return result;
}

CUresult cuModuleUnload(const Call& call, CUmodule module) {
  const CUresult result = call.driver.cuModuleUnload(module);
  forget_kernels();
  return result;
}

CUresult cuLibraryUnload(const Call& call, CUlibrary library) {
  const CUresult result = call.driver.cuLibraryUnload(library);
  forget_kernels();
  return result;
}

}  // namespace firebreak::guard::hooks
