// SPDX-License-Identifier: Apache-2.0
/// Entry points: device memory shared between processes.
#include "softgpu/driver/entry.h"

using namespace firebreak::softgpu::driver;

extern "C" {

CUresult cuIpcGetMemHandle(CUipcMemHandle* handle, CUdeviceptr pointer) {
  return with_context(
      [&](Process& process, Context&) { return store(handle, process.shared_memory().share(pointer)); });
}

CUresult cuIpcOpenMemHandle_v2(CUdeviceptr* pointer, CUipcMemHandle handle, unsigned int flags) {
  return with_context([&](Process& process, Context&) {
    if (flags != CU_IPC_MEM_LAZY_ENABLE_PEER_ACCESS) return CUDA_ERROR_INVALID_VALUE;
    return store(pointer, process.shared_memory().open(handle));
  });
}

CUresult cuIpcCloseMemHandle(CUdeviceptr pointer) {
  return with_context([&](Process& process, Context& context) {
    context.synchronize();
    return process.shared_memory().close(pointer);
  });
}

}  // extern "C"
