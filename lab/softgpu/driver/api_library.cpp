// SPDX-License-Identifier: Apache-2.0
/// Entry points: libraries, which are modules of their own here, and kernels, which are functions. A library
/// is in the context that is current when it is loaded, as its variables are.
#include "softgpu/driver/entry.h"

namespace {

CUmodule module_of(CUlibrary library) { return reinterpret_cast<CUmodule>(library); }
CUfunction function_of(CUkernel kernel) { return reinterpret_cast<CUfunction>(kernel); }

}  // namespace

extern "C" {

CUresult cuLibraryLoadData(CUlibrary* library, const void* code, CUjit_option* jit_options,
                           void** jit_options_values, unsigned int jit_option_count, CUlibraryOption*, void**,
                           unsigned int) {
  return cuModuleLoadDataEx(reinterpret_cast<CUmodule*>(library), code, jit_option_count, jit_options,
                            jit_options_values);
}

CUresult cuLibraryLoadFromFile(CUlibrary* library, const char* file_name, CUjit_option*, void**, unsigned int,
                               CUlibraryOption*, void**, unsigned int) {
  return cuModuleLoad(reinterpret_cast<CUmodule*>(library), file_name);
}

CUresult cuLibraryUnload(CUlibrary library) { return cuModuleUnload(module_of(library)); }

CUresult cuLibraryGetModule(CUmodule* module, CUlibrary library) {
  if (module == nullptr) return CUDA_ERROR_INVALID_VALUE;
  *module = module_of(library);
  return CUDA_SUCCESS;
}

CUresult cuLibraryGetKernel(CUkernel* kernel, CUlibrary library, const char* name) {
  return cuModuleGetFunction(reinterpret_cast<CUfunction*>(kernel), module_of(library), name);
}

CUresult cuLibraryGetGlobal(CUdeviceptr* pointer, std::size_t* size_bytes, CUlibrary library,
                            const char* name) {
  return cuModuleGetGlobal_v2(pointer, size_bytes, module_of(library), name);
}

CUresult cuKernelGetFunction(CUfunction* function, CUkernel kernel) {
  if (function == nullptr) return CUDA_ERROR_INVALID_VALUE;
  *function = function_of(kernel);
  return CUDA_SUCCESS;
}

}  // extern "C"
