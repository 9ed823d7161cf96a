// SPDX-License-Identifier: Apache-2.0
/// Entry points: errors in words, finding entry points, GPU core dump settings.
#include <dlfcn.h>

#include <csignal>
#include <string>
#include <string_view>

#include "shared/abi/cuda_api.h"
#include "softgpu/driver/entry.h"
#include "softgpu/driver/error_text.h"

using namespace firebreak::softgpu::driver;

namespace {

void* own_symbol(const std::string& name) {
  Dl_info own{};
  if (::dladdr(reinterpret_cast<void*>(&own_symbol), &own) == 0) return nullptr;
  void* library = ::dlopen(own.dli_fname, RTLD_NOW | RTLD_NOLOAD);
  if (library == nullptr) return nullptr;
  void* found = ::dlsym(library, name.c_str());
  ::dlclose(library);
  return found;
}

/// A later CUDA than the table knows has another cuMemGetInfo, which also says how many devices it is for. As
/// with NVIDIA's, whoever asks for the name at that version gets a function with other parameters.
constexpr int version_of_newer = 13020;

CUresult newer_memory_info(std::size_t* free_bytes, std::size_t* total_bytes, int* devices) {
  if (devices == nullptr) return CUDA_ERROR_INVALID_VALUE;
  *devices = 1;
  return cuMemGetInfo_v2(free_bytes, total_bytes);
}

/// And it has a function of a name that the table does not know.
CUresult newer_than_all(int* answer) {
  if (answer == nullptr) return CUDA_ERROR_INVALID_VALUE;
  *answer = 1;
  return CUDA_SUCCESS;
}

CUdriverProcAddressQueryResult find_entry(std::string_view name, int api_version, bool per_thread,
                                          void** function) {
  const auto* const row = firebreak::abi::cuda_function_at(name, api_version);
  if (row == nullptr && firebreak::abi::is_cuda_function_name(name)) {
    return CU_GET_PROC_ADDRESS_VERSION_NOT_SUFFICIENT;
  }
  if (name == "cuMemGetInfo" && api_version >= version_of_newer) {
    *function = reinterpret_cast<void*>(&newer_memory_info);
    return CU_GET_PROC_ADDRESS_SUCCESS;
  }
  if (name == "cuNewerThanAll" && api_version >= version_of_newer) {
    *function = reinterpret_cast<void*>(&newer_than_all);
    return CU_GET_PROC_ADDRESS_SUCCESS;
  }
  if (!name.starts_with("cu")) return CU_GET_PROC_ADDRESS_SYMBOL_NOT_FOUND;
  std::string_view symbol = row == nullptr ? name : row->symbol;
  if (per_thread && row != nullptr && !row->per_thread_symbol.empty()) symbol = row->per_thread_symbol;
  *function = own_symbol(std::string(symbol));
  return *function == nullptr ? CU_GET_PROC_ADDRESS_SYMBOL_NOT_FOUND : CU_GET_PROC_ADDRESS_SUCCESS;
}

}  // namespace

extern "C" {

CUresult cuGetErrorName(CUresult error, const char** text) {
  if (text == nullptr) return CUDA_ERROR_INVALID_VALUE;
  const ErrorText* row = find_error_text(error);
  *text = row == nullptr ? nullptr : row->name;
  return row == nullptr ? CUDA_ERROR_INVALID_VALUE : CUDA_SUCCESS;
}

CUresult cuGetErrorString(CUresult error, const char** text) {
  if (text == nullptr) return CUDA_ERROR_INVALID_VALUE;
  const ErrorText* row = find_error_text(error);
  *text = row == nullptr ? nullptr : row->text;
  return row == nullptr ? CUDA_ERROR_INVALID_VALUE : CUDA_SUCCESS;
}

CUresult cuGetProcAddress_v2(const char* symbol, void** function, int driver_version, std::uint64_t flags,
                             CUdriverProcAddressQueryResult* symbol_found) {
  if (symbol == nullptr || function == nullptr) return CUDA_ERROR_INVALID_VALUE;
  *function = nullptr;
  const bool per_thread = (flags & CU_GET_PROC_ADDRESS_PER_THREAD_DEFAULT_STREAM) != 0;
  const auto result = find_entry(symbol, driver_version, per_thread, function);
  if (symbol_found != nullptr) *symbol_found = result;
  // The caller that gives `symbol_found` takes a missing name as an answer, not as an error.
  return result == CU_GET_PROC_ADDRESS_SUCCESS || symbol_found != nullptr ? CUDA_SUCCESS
                                                                          : CUDA_ERROR_NOT_FOUND;
}

CUresult cuGetProcAddress(const char* symbol, void** function, int driver_version, std::uint64_t flags) {
  return cuGetProcAddress_v2(symbol, function, driver_version, flags, nullptr);
}

CUresult cuCoredumpGetAttribute(CUcoredumpSettings, void*, std::size_t*) { return CUDA_ERROR_NOT_SUPPORTED; }
CUresult cuCoredumpSetAttribute(CUcoredumpSettings, void*, std::size_t*) { return CUDA_ERROR_NOT_SUPPORTED; }
CUresult cuCoredumpGetAttributeGlobal(CUcoredumpSettings setting, void* value, std::size_t* size) {
  return with_process([&](Process& process) { return process.core_dump_mode().get(setting, value, size); });
}
/// The driver ended the process with that signal before cuInit (H200).
CUresult cuCoredumpSetAttributeGlobal(CUcoredumpSettings setting, void* value, std::size_t* size) {
  if (Process::current() == nullptr) std::raise(SIGSEGV);
  if (size == nullptr) return CUDA_ERROR_INVALID_VALUE;
  return with_process([&](Process& process) {
    const CUresult result = process.core_dump_mode().set(setting, value, *size);
    process.enter_core_dump_mode();
    return result;
  });
}

}  // extern "C"
