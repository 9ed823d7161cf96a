// SPDX-License-Identifier: Apache-2.0
/// What words behind launches must know of, in the driver's place: streams, captures, what makes handles mean
/// something else, and launches that are not counted.
#include "guard/preload/driver_functions.h"
#include "guard/preload/process_guard.h"
#include "guard/preload/real_function.h"

using firebreak::guard::ask_driver;
using firebreak::guard::forget_kernels;
using firebreak::guard::forget_streams;
using firebreak::guard::Guard;
using firebreak::guard::LaunchWords;
using firebreak::guard::ProcessGuard;
using firebreak::guard::words_of_process;

namespace {

CUresult after_creation(CUresult result, unsigned int flags) {
  LaunchWords* const words = words_of_process();
  if (words != nullptr && result == CUDA_SUCCESS) words->stream_created(flags);
  return result;
}

/// The guard, where it is up: whoever captures has a context.
Guard* guard() {
  ProcessGuard* const process = ProcessGuard::get();
  return process == nullptr || !process->guard().is_on() ? nullptr : &process->guard();
}

template <class Function, class... Arguments>
CUresult begin_capture(const char* name, CUstream stream, Arguments... arguments) {
  const auto begin = [&] { return ask_driver<Function>(name, stream, arguments...); };
  LaunchWords* const words = words_of_process();
  Guard* const ours = guard();
  if (ours != nullptr) ours->capture_begins(stream);  // before the first call that could make it void
  const CUresult result = words == nullptr ? begin() : words->begin_capture(begin);
  if (ours != nullptr && result != CUDA_SUCCESS) ours->capture_ends(stream);
  return result;
}

CUresult end_capture(const char* name, CUstream stream, CUgraph* graph) {
  const auto end = [&] { return ask_driver<PFN_cuStreamEndCapture>(name, stream, graph); };
  LaunchWords* const words = words_of_process();
  const CUresult result = words == nullptr ? end() : words->end_capture(end);
  const bool goes_on = result == CUDA_ERROR_STREAM_CAPTURE_WRONG_THREAD;
  if (Guard* const ours = guard(); ours != nullptr && !goes_on) ours->capture_ends(stream);
  return result;
}

template <class Function, class... Arguments>
CUresult launch_uncounted(const char* name, Arguments... arguments) {
  LaunchWords* const words = words_of_process();
  if (words != nullptr) words->log().note_gap(firebreak::abi::GuardWorkUncounted);
  return ask_driver<Function>(name, arguments...);
}

}  // namespace

CUresult cuStreamCreate(CUstream* stream, unsigned int flags) {
  return after_creation(ask_driver<PFN_cuStreamCreate>("cuStreamCreate", stream, flags), flags);
}

CUresult cuStreamCreateWithPriority(CUstream* stream, unsigned int flags, int priority) {
  return after_creation(
      ask_driver<PFN_cuStreamCreateWithPriority>("cuStreamCreateWithPriority", stream, flags, priority),
      flags);
}

CUresult cuStreamDestroy_v2(CUstream stream) {
  const auto destroy = [&] { return ask_driver<PFN_cuStreamDestroy_v2>("cuStreamDestroy_v2", stream); };
  LaunchWords* const words = words_of_process();
  const CUresult result = words == nullptr ? destroy() : words->destroy_stream(stream, destroy);
  if (Guard* const ours = guard(); ours != nullptr && result == CUDA_SUCCESS) ours->capture_ends(stream);
  forget_streams();
  return result;
}

CUresult cuStreamBeginCapture_v2(CUstream stream, CUstreamCaptureMode mode) {
  return begin_capture<PFN_cuStreamBeginCapture_v2>("cuStreamBeginCapture_v2", stream, mode);
}

CUresult cuStreamBeginCapture_v2_ptsz(CUstream stream, CUstreamCaptureMode mode) {
  return begin_capture<PFN_cuStreamBeginCapture_v2>("cuStreamBeginCapture_v2_ptsz", stream, mode);
}

CUresult cuStreamBeginCaptureToGraph(CUstream stream, CUgraph graph, const CUgraphNode* dependencies,
                                     const CUgraphEdgeData* edges, std::size_t count,
                                     CUstreamCaptureMode mode) {
  return begin_capture<PFN_cuStreamBeginCaptureToGraph>("cuStreamBeginCaptureToGraph", stream, graph,
                                                        dependencies, edges, count, mode);
}

CUresult cuStreamBeginCaptureToGraph_ptsz(CUstream stream, CUgraph graph, const CUgraphNode* dependencies,
                                          const CUgraphEdgeData* edges, std::size_t count,
                                          CUstreamCaptureMode mode) {
  return begin_capture<PFN_cuStreamBeginCaptureToGraph>("cuStreamBeginCaptureToGraph_ptsz", stream, graph,
                                                        dependencies, edges, count, mode);
}

CUresult cuStreamEndCapture(CUstream stream, CUgraph* graph) {
  return end_capture("cuStreamEndCapture", stream, graph);
}

CUresult cuStreamEndCapture_ptsz(CUstream stream, CUgraph* graph) {
  return end_capture("cuStreamEndCapture_ptsz", stream, graph);
}

CUresult cuModuleUnload(CUmodule module) {
  const CUresult result = ask_driver<PFN_cuModuleUnload>("cuModuleUnload", module);
  forget_kernels();
  return result;
}

CUresult cuLibraryUnload(CUlibrary library) {
  const CUresult result = ask_driver<PFN_cuLibraryUnload>("cuLibraryUnload", library);
  forget_kernels();
  return result;
}

CUresult cuLaunch(CUfunction function) {
  return launch_uncounted<CUresult (*)(CUfunction)>("cuLaunch", function);
}

CUresult cuLaunchGrid(CUfunction function, int grid_x, int grid_y) {
  return launch_uncounted<CUresult (*)(CUfunction, int, int)>("cuLaunchGrid", function, grid_x, grid_y);
}

CUresult cuLaunchGridAsync(CUfunction function, int grid_x, int grid_y, CUstream stream) {
  return launch_uncounted<CUresult (*)(CUfunction, int, int, CUstream)>("cuLaunchGridAsync", function, grid_x,
                                                                        grid_y, stream);
}

CUresult cuLaunchCooperativeKernelMultiDevice(void* launches, unsigned int count, unsigned int flags) {
  return launch_uncounted<CUresult (*)(void*, unsigned int, unsigned int)>(
      "cuLaunchCooperativeKernelMultiDevice", launches, count, flags);
}
