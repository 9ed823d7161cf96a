// SPDX-License-Identifier: Apache-2.0
/// Entry points: errors in words, finding entry points, GPU core dump settings.
#include <dlfcn.h>

#include <array>
#include <string>
#include <string_view>

#include "softgpu/driver/entry.h"
#include "softgpu/driver/error_text.h"

using namespace firebreak::softgpu::driver;

namespace {

/// Names whose newest version is not simply "_v2, where there is one", with the API version that each came
/// in.
struct VersionedName {
  std::string_view name;
  int api_version;
  std::string_view symbol;
};
constexpr std::array versioned_names = std::to_array<VersionedName>({
    {"cuCtxCreate", 13000, "cuCtxCreate_v4"},
    {"cuCtxCreate", 11040, "cuCtxCreate_v3"},
    {"cuCtxCreate", 3020, "cuCtxCreate_v2"},
    {"cuGetProcAddress", 12000, "cuGetProcAddress_v2"},
    {"cuGetProcAddress", 11030, "cuGetProcAddress"},
    {"cuEventElapsedTime", 12080, "cuEventElapsedTime_v2"},
    {"cuEventElapsedTime", 2000, "cuEventElapsedTime"},
    {"cuDeviceGetUuid", 11040, "cuDeviceGetUuid_v2"},
    {"cuDeviceGetUuid", 9020, "cuDeviceGetUuid"},
});

void* own_symbol(const std::string& name) {
  Dl_info own{};
  if (::dladdr(reinterpret_cast<void*>(&own_symbol), &own) == 0) return nullptr;
  void* library = ::dlopen(own.dli_fname, RTLD_NOW | RTLD_NOLOAD);
  if (library == nullptr) return nullptr;
  void* found = ::dlsym(library, name.c_str());
  ::dlclose(library);
  return found;
}

CUdriverProcAddressQueryResult find_entry(std::string_view name, int api_version, void** function) {
  bool known = false;
  for (const VersionedName& row : versioned_names) {
    if (row.name != name) continue;
    known = true;
    if (api_version < row.api_version) continue;
    *function = own_symbol(std::string(row.symbol));
    return CU_GET_PROC_ADDRESS_SUCCESS;
  }
  if (known) return CU_GET_PROC_ADDRESS_VERSION_NOT_SUFFICIENT;
  if (!name.starts_with("cu")) return CU_GET_PROC_ADDRESS_SYMBOL_NOT_FOUND;
  *function = own_symbol(std::string(name) + "_v2");
  if (*function == nullptr) *function = own_symbol(std::string(name));
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
  // There are no entry points whose default stream is the thread's own.
  const bool per_thread = (flags & CU_GET_PROC_ADDRESS_PER_THREAD_DEFAULT_STREAM) != 0;
  const auto result =
      per_thread ? CU_GET_PROC_ADDRESS_SYMBOL_NOT_FOUND : find_entry(symbol, driver_version, function);
  if (symbol_found != nullptr) *symbol_found = result;
  // With `symbol_found` a missing name is an answer, not an error.
  return result == CU_GET_PROC_ADDRESS_SUCCESS || symbol_found != nullptr ? CUDA_SUCCESS
                                                                          : CUDA_ERROR_NOT_FOUND;
}

CUresult cuGetProcAddress(const char* symbol, void** function, int driver_version, std::uint64_t flags) {
  return cuGetProcAddress_v2(symbol, function, driver_version, flags, nullptr);
}

CUresult cuGetExportTable(const void** table, const CUuuid*) {
  if (table != nullptr) *table = nullptr;
  return CUDA_ERROR_NOT_FOUND;
}

CUresult cuCoredumpGetAttribute(CUcoredumpSettings, void*, std::size_t*) { return CUDA_ERROR_NOT_SUPPORTED; }
CUresult cuCoredumpSetAttribute(CUcoredumpSettings, void*, std::size_t*) { return CUDA_ERROR_NOT_SUPPORTED; }
CUresult cuCoredumpGetAttributeGlobal(CUcoredumpSettings, void*, std::size_t*) {
  return CUDA_ERROR_NOT_SUPPORTED;
}
CUresult cuCoredumpSetAttributeGlobal(CUcoredumpSettings, void*, std::size_t*) {
  return CUDA_ERROR_NOT_SUPPORTED;
}

}  // extern "C"
