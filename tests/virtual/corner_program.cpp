// SPDX-License-Identifier: Apache-2.0
#include "tests/virtual/corner_program.h"

#include <atomic>
#include <thread>

namespace firebreak::test {
namespace {

constexpr std::size_t piece_bytes = std::size_t{4} << 20;

CUresult first_of(CUresult before, CUresult result) { return before == CUDA_SUCCESS ? result : before; }

}  // namespace

std::pair<CUresult, unsigned long long> CornerProgram::run(const std::string& what, std::istream& words) {
  unsigned int times = 0;
  if (const CUresult prepared = prepare(); prepared != CUDA_SUCCESS) return {prepared, 0};
  if (what == "capture_and_free" && words >> times) return {capture_and_free(times), 0};
  if (what == "free_twice") return {free_twice(), 0};
  return {CUDA_ERROR_UNKNOWN, 0};
}

CUresult CornerProgram::prepare() {
  return context_ != nullptr ? CUDA_SUCCESS : driver_.cuCtxGetCurrent(&context_);
}

/// In a mode that forbids other threads nothing.
CUresult CornerProgram::capture_and_free(unsigned int times) {
  std::atomic<bool> is_over{false};
  CUresult captured = CUDA_SUCCESS;
  std::thread capturing([&] {
    captured = driver_.cuCtxSetCurrent(context_);
    CUstream stream = nullptr;
    captured = first_of(captured, driver_.cuStreamCreate(&stream, CU_STREAM_NON_BLOCKING));
    CUdeviceptr memory = 0;
    captured = first_of(captured, driver_.cuMemAlloc_v2(&memory, 4096));
    for (unsigned int i = 0; i < times && captured == CUDA_SUCCESS; ++i) {
      CUgraph graph = nullptr;
      captured = driver_.cuStreamBeginCapture_v2(stream, CU_STREAM_CAPTURE_MODE_THREAD_LOCAL);
      for (int node = 0; node < 8 && captured == CUDA_SUCCESS; ++node)
        captured = driver_.cuMemsetD32Async(memory, i, 1024, stream);
      captured = first_of(captured, driver_.cuStreamEndCapture(stream, &graph));
      captured = first_of(captured, driver_.cuGraphDestroy(graph));
    }
    is_over.store(true);
  });
  CUresult freed = CUDA_SUCCESS;
  while (!is_over.load() && freed == CUDA_SUCCESS) {
    CUdeviceptr memory = 0;
    freed = driver_.cuMemAlloc_v2(&memory, piece_bytes);
    freed = first_of(freed, driver_.cuMemFree_v2(memory));
  }
  capturing.join();
  return first_of(captured, freed);
}

CUresult CornerProgram::free_twice() {
  CUstream stream = nullptr;
  CUresult result = driver_.cuStreamCreate(&stream, CU_STREAM_NON_BLOCKING);
  CUdeviceptr memory = 0;
  result = first_of(result, driver_.cuMemAllocAsync(&memory, piece_bytes, stream));
  result = first_of(result, driver_.cuMemFreeAsync(memory, stream));
  result = first_of(result, driver_.cuStreamSynchronize(stream));
  if (result != CUDA_SUCCESS) return CUDA_ERROR_UNKNOWN;
  return driver_.cuMemFreeAsync(memory, stream);
}

}  // namespace firebreak::test
