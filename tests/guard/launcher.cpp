// SPDX-License-Identifier: Apache-2.0
/// A program that links against libcuda and launches in all ways: it captures a stream, forks, and has
/// threads that come and go. It says what came of each of its calls, and how many nodes its graph has.
#include <sys/wait.h>
#include <unistd.h>

#include <cstdio>
#include <thread>

#include "shared/abi/cuda_driver_functions.h"

extern "C" {
CUresult cuInit(unsigned int);
CUresult cuCtxCreate_v2(CUcontext*, unsigned int, CUdevice);
CUresult cuCtxSetCurrent(CUcontext);
CUresult cuCtxSynchronize();
CUresult cuModuleLoadDataEx(CUmodule*, const void*, unsigned int, CUjit_option*, void**);
CUresult cuModuleGetFunction(CUfunction*, CUmodule, const char*);
CUresult cuStreamCreate(CUstream*, unsigned int);
CUresult cuStreamDestroy_v2(CUstream);
CUresult cuStreamSynchronize(CUstream);
CUresult cuStreamBeginCapture_v2(CUstream, CUstreamCaptureMode);
CUresult cuStreamEndCapture(CUstream, CUgraph*);
CUresult cuStreamIsCapturing(CUstream, CUstreamCaptureStatus*);
CUresult cuGraphGetNodes(CUgraph, CUgraphNode*, std::size_t*);
CUresult cuGraphInstantiateWithFlags(CUgraphExec*, CUgraph, unsigned long long);
CUresult cuGraphLaunch(CUgraphExec, CUstream);
CUresult cuGraphDestroy(CUgraph);
CUresult cuGraphExecDestroy(CUgraphExec);
CUresult cuLaunchKernel(CUfunction, unsigned int, unsigned int, unsigned int, unsigned int, unsigned int,
                        unsigned int, unsigned int, CUstream, void**, void**);
}

namespace {

constexpr const char* ptx = R"(.version 7.0
.target sm_70
.address_size 64

.visible .entry nothing()
{
  ret;
}
)";

/// The guard's thread has had its turns in it; where it has not, nothing is seen of it either.
constexpr useconds_t some_rounds_us = 60'000;

void say(const char* call, CUresult result) { std::printf("%s %d\n", call, static_cast<int>(result)); }

CUresult launch(CUfunction function, CUstream stream) {
  return cuLaunchKernel(function, 1, 1, 1, 1, 1, 1, 0, stream, nullptr, nullptr);
}

CUgraph capture(CUfunction function, CUstream stream) {
  say("begin", cuStreamBeginCapture_v2(stream, CU_STREAM_CAPTURE_MODE_GLOBAL));
  for (int n = 0; n < 2; ++n) {
    say("launch", launch(function, stream));
    ::usleep(some_rounds_us);
  }
  CUstreamCaptureStatus status = CU_STREAM_CAPTURE_STATUS_NONE;
  say("is capturing", cuStreamIsCapturing(stream, &status));
  CUgraph graph = nullptr;
  say("end", cuStreamEndCapture(stream, &graph));
  std::size_t nodes = 0;
  say("nodes", cuGraphGetNodes(graph, nullptr, &nodes));
  std::printf("captured %d, nodes %zu\n", static_cast<int>(status), nodes);
  return graph;
}

/// A child cannot use CUDA, and its parent can.
void launch_in_child(CUfunction function, CUstream stream) {
  const pid_t child = ::fork();
  if (child == 0) ::_exit(static_cast<int>(launch(function, stream)));
  int status = 0;
  ::waitpid(child, &status, 0);
  std::printf("launch in child %d\n", WEXITSTATUS(status));
  say("launch after child", launch(function, stream));
}

/// Threads that come and go.
void launch_in_threads(CUcontext context, CUfunction function, CUstream stream) {
  for (int n = 0; n < 300; ++n) {
    CUresult result = CUDA_SUCCESS;
    std::thread([&] {
      result = cuCtxSetCurrent(context);
      if (result == CUDA_SUCCESS) result = launch(function, stream);
    }).join();
    if (result != CUDA_SUCCESS) say("launch in thread", result);
  }
}

}  // namespace

int main() {
  CUcontext context = nullptr;
  CUmodule module = nullptr;
  CUfunction function = nullptr;
  CUstream stream = nullptr;
  say("init", cuInit(0));
  say("context", cuCtxCreate_v2(&context, 0, 0));
  say("module", cuModuleLoadDataEx(&module, ptx, 0, nullptr, nullptr));
  say("function", cuModuleGetFunction(&function, module, "nothing"));
  say("stream", cuStreamCreate(&stream, CU_STREAM_NON_BLOCKING));
  say("launch before", launch(function, stream));
  ::usleep(some_rounds_us);
  const CUgraph graph = capture(function, stream);
  CUgraphExec executable = nullptr;
  say("instantiate", cuGraphInstantiateWithFlags(&executable, graph, 0));
  say("launch graph", cuGraphLaunch(executable, stream));
  launch_in_child(function, stream);
  launch_in_threads(context, function, stream);
  say("synchronize", cuStreamSynchronize(stream));
  say("destroy", cuGraphExecDestroy(executable));
  say("destroy", cuGraphDestroy(graph));
  say("destroy", cuStreamDestroy_v2(stream));
  say("synchronize", cuCtxSynchronize());
  return 0;
}
