// SPDX-License-Identifier: Apache-2.0
/// A program that links against libcuda, gives the GPU work, waits for that, and ends at once:
/// guard_test_finisher HOW END, where HOW is context, stream, query, copy or own-stream, and END the number
/// of a status, of a signal behind "signal", or "at-once" for _exit().
#include <signal.h>
#include <unistd.h>

#include <array>
#include <cstdlib>
#include <string>

#include "shared/abi/cuda_driver_functions.h"

extern "C" {
CUresult cuInit(unsigned int);
CUresult cuDevicePrimaryCtxRetain(CUcontext*, CUdevice);
CUresult cuCtxSetCurrent(CUcontext);
CUresult cuCtxSynchronize();
CUresult cuMemAlloc_v2(CUdeviceptr*, std::size_t);
CUresult cuMemcpyDtoH_v2(void*, CUdeviceptr, std::size_t);
CUresult cuMemsetD32Async(CUdeviceptr, unsigned int, std::size_t, CUstream);
CUresult cuStreamCreate(CUstream*, unsigned int);
CUresult cuStreamQuery(CUstream);
CUresult cuStreamSynchronize(CUstream);
}

namespace {

constexpr int wrong = 99;

CUresult wait_for(const std::string& how, CUstream stream, CUdeviceptr memory) {
  std::array<unsigned int, 64> host{};
  if (how == "context") return cuCtxSynchronize();
  if (how == "copy") return cuMemcpyDtoH_v2(host.data(), memory, sizeof host);
  if (how != "query") return cuStreamSynchronize(stream);
  CUresult result = CUDA_ERROR_NOT_READY;
  while (result == CUDA_ERROR_NOT_READY) result = cuStreamQuery(stream);
  return result;
}

int end(const std::string& how) {
  if (how == "at-once") _exit(7);
  if (!how.starts_with("signal")) return std::atoi(how.c_str());
  (void)raise(std::atoi(how.c_str() + 6));
  for (;;) pause();
}

}  // namespace

int main(int count, char** arguments) {
  if (count != 3) return wrong;
  const std::string how = arguments[1];
  CUcontext context = nullptr;
  CUdeviceptr memory = 0;
  CUstream stream = nullptr;
  if (cuInit(0) != CUDA_SUCCESS || cuDevicePrimaryCtxRetain(&context, 0) != CUDA_SUCCESS ||
      cuCtxSetCurrent(context) != CUDA_SUCCESS || cuMemAlloc_v2(&memory, 4096) != CUDA_SUCCESS)
    return wrong;
  if (how == "own-stream" && cuStreamCreate(&stream, CU_STREAM_NON_BLOCKING) != CUDA_SUCCESS) return wrong;
  for (int i = 0; i < 8; ++i) {
    if (cuMemsetD32Async(memory, 5, 64, stream) != CUDA_SUCCESS) return wrong;
  }
  return wait_for(how, stream, memory) == CUDA_SUCCESS ? end(arguments[2]) : wrong;
}
