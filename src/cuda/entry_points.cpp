// SPDX-License-Identifier: Apache-2.0
#include "cuda/entry_points.h"

#include <string>

namespace firebreak::cuda {
namespace {

/// Asks for one entry point after the other and remembers the first that is missing.
class Resolver {
 public:
  explicit Resolver(PFN_cuGetProcAddress_v2 get_proc_address) : get_proc_address_(get_proc_address) {}

  template <class Function>
  void operator()(const char* name, Function& slot) {
    void* address = nullptr;
    auto why = CU_GET_PROC_ADDRESS_SUCCESS;
    const CUresult result = get_proc_address_(name, &address, api_version, CU_GET_PROC_ADDRESS_DEFAULT, &why);
    if (result == CUDA_SUCCESS && address != nullptr) {
      slot = reinterpret_cast<Function>(address);
    } else if (missing_.empty()) {
      missing_ = name;
    }
  }

  const std::string& missing() const { return missing_; }

 private:
  PFN_cuGetProcAddress_v2 get_proc_address_;
  std::string missing_;
};

void resolve_basics(Resolver& resolve, EntryPoints& table) {
  resolve("cuInit", table.cuInit);
  resolve("cuDriverGetVersion", table.cuDriverGetVersion);
  resolve("cuGetErrorName", table.cuGetErrorName);
  resolve("cuGetErrorString", table.cuGetErrorString);
}

void resolve_devices(Resolver& resolve, EntryPoints& table) {
  resolve("cuDeviceGet", table.cuDeviceGet);
  resolve("cuDeviceGetCount", table.cuDeviceGetCount);
  resolve("cuDeviceGetName", table.cuDeviceGetName);
  resolve("cuDeviceGetUuid", table.cuDeviceGetUuid);
  resolve("cuDeviceTotalMem", table.cuDeviceTotalMem);
  resolve("cuDeviceGetAttribute", table.cuDeviceGetAttribute);
  resolve("cuDeviceGetPCIBusId", table.cuDeviceGetPCIBusId);
}

void resolve_contexts(Resolver& resolve, EntryPoints& table) {
  resolve("cuCtxCreate", table.cuCtxCreate);
  resolve("cuCtxDestroy", table.cuCtxDestroy);
  resolve("cuCtxSetCurrent", table.cuCtxSetCurrent);
  resolve("cuCtxGetCurrent", table.cuCtxGetCurrent);
  resolve("cuCtxPushCurrent", table.cuCtxPushCurrent);
  resolve("cuCtxPopCurrent", table.cuCtxPopCurrent);
  resolve("cuCtxGetDevice", table.cuCtxGetDevice);
  resolve("cuCtxSynchronize", table.cuCtxSynchronize);
  resolve("cuCtxSetLimit", table.cuCtxSetLimit);
  resolve("cuCtxGetLimit", table.cuCtxGetLimit);
  resolve("cuCtxGetStreamPriorityRange", table.cuCtxGetStreamPriorityRange);
  resolve("cuDevicePrimaryCtxRetain", table.cuDevicePrimaryCtxRetain);
  resolve("cuDevicePrimaryCtxRelease", table.cuDevicePrimaryCtxRelease);
}

void resolve_modules_and_functions(Resolver& resolve, EntryPoints& table) {
  resolve("cuModuleLoadDataEx", table.cuModuleLoadDataEx);
  resolve("cuModuleUnload", table.cuModuleUnload);
  resolve("cuModuleGetFunction", table.cuModuleGetFunction);
  resolve("cuModuleGetGlobal", table.cuModuleGetGlobal);
  resolve("cuFuncGetAttribute", table.cuFuncGetAttribute);
  resolve("cuFuncSetAttribute", table.cuFuncSetAttribute);
  resolve("cuLaunchKernel", table.cuLaunchKernel);
}

void resolve_streams_and_events(Resolver& resolve, EntryPoints& table) {
  resolve("cuStreamCreateWithPriority", table.cuStreamCreateWithPriority);
  resolve("cuStreamDestroy", table.cuStreamDestroy);
  resolve("cuStreamQuery", table.cuStreamQuery);
  resolve("cuStreamSynchronize", table.cuStreamSynchronize);
  resolve("cuStreamWaitEvent", table.cuStreamWaitEvent);
  resolve("cuStreamGetCtx", table.cuStreamGetCtx);
  resolve("cuStreamIsCapturing", table.cuStreamIsCapturing);
  resolve("cuStreamWaitValue32", table.cuStreamWaitValue32);
  resolve("cuStreamWriteValue32", table.cuStreamWriteValue32);
  resolve("cuStreamWaitValue64", table.cuStreamWaitValue64);
  resolve("cuStreamWriteValue64", table.cuStreamWriteValue64);
  resolve("cuEventCreate", table.cuEventCreate);
  resolve("cuEventDestroy", table.cuEventDestroy);
  resolve("cuEventRecord", table.cuEventRecord);
  resolve("cuEventQuery", table.cuEventQuery);
  resolve("cuEventSynchronize", table.cuEventSynchronize);
  resolve("cuEventElapsedTime", table.cuEventElapsedTime);
}

void resolve_memory(Resolver& resolve, EntryPoints& table) {
  resolve("cuMemGetInfo", table.cuMemGetInfo);
  resolve("cuMemAlloc", table.cuMemAlloc);
  resolve("cuMemFree", table.cuMemFree);
  resolve("cuMemHostAlloc", table.cuMemHostAlloc);
  resolve("cuMemFreeHost", table.cuMemFreeHost);
  resolve("cuMemHostGetDevicePointer", table.cuMemHostGetDevicePointer);
  resolve("cuMemHostRegister", table.cuMemHostRegister);
  resolve("cuMemHostUnregister", table.cuMemHostUnregister);
  resolve("cuPointerGetAttribute", table.cuPointerGetAttribute);
}

void resolve_copies_and_fills(Resolver& resolve, EntryPoints& table) {
  resolve("cuMemcpyHtoD", table.cuMemcpyHtoD);
  resolve("cuMemcpyDtoH", table.cuMemcpyDtoH);
  resolve("cuMemcpyDtoD", table.cuMemcpyDtoD);
  resolve("cuMemcpyHtoDAsync", table.cuMemcpyHtoDAsync);
  resolve("cuMemcpyDtoHAsync", table.cuMemcpyDtoHAsync);
  resolve("cuMemcpyDtoDAsync", table.cuMemcpyDtoDAsync);
  resolve("cuMemcpy2DAsync", table.cuMemcpy2DAsync);
  resolve("cuMemsetD8", table.cuMemsetD8);
  resolve("cuMemsetD32", table.cuMemsetD32);
  resolve("cuMemsetD8Async", table.cuMemsetD8Async);
  resolve("cuMemsetD32Async", table.cuMemsetD32Async);
}

void resolve_virtual_memory(Resolver& resolve, EntryPoints& table) {
  resolve("cuMemAddressReserve", table.cuMemAddressReserve);
  resolve("cuMemAddressFree", table.cuMemAddressFree);
  resolve("cuMemCreate", table.cuMemCreate);
  resolve("cuMemRelease", table.cuMemRelease);
  resolve("cuMemMap", table.cuMemMap);
  resolve("cuMemUnmap", table.cuMemUnmap);
  resolve("cuMemSetAccess", table.cuMemSetAccess);
  resolve("cuMemExportToShareableHandle", table.cuMemExportToShareableHandle);
  resolve("cuMemImportFromShareableHandle", table.cuMemImportFromShareableHandle);
  resolve("cuMemGetAllocationGranularity", table.cuMemGetAllocationGranularity);
  resolve("cuMemGetAllocationPropertiesFromHandle", table.cuMemGetAllocationPropertiesFromHandle);
  resolve("cuMemRetainAllocationHandle", table.cuMemRetainAllocationHandle);
}

}  // namespace

Result<EntryPoints> resolve_entry_points(PFN_cuGetProcAddress_v2 get_proc_address) {
  Resolver resolve(get_proc_address);
  EntryPoints table;
  resolve_basics(resolve, table);
  resolve_devices(resolve, table);
  resolve_contexts(resolve, table);
  resolve_modules_and_functions(resolve, table);
  resolve_streams_and_events(resolve, table);
  resolve_memory(resolve, table);
  resolve_copies_and_fills(resolve, table);
  resolve_virtual_memory(resolve, table);
  if (!resolve.missing().empty()) {
    return fail(ErrorCode::Unsupported, "the CUDA driver has no " + resolve.missing(),
                "a driver for CUDA 12.0 or later (version 525) is needed");
  }
  return table;
}

}  // namespace firebreak::cuda
