// SPDX-License-Identifier: Apache-2.0
#include "program/cuda/driver.h"

#include <dlfcn.h>

#include <cstdlib>

namespace firebreak::cuda {
namespace {

constexpr const char* default_library = "libcuda.so.1";
constexpr const char* library_variable = "FIREBREAK_CUDA_LIBRARY";

std::string choose_library(const std::string& path) {
  if (!path.empty()) return path;
  const char* from_environment = std::getenv(library_variable);
  if (from_environment != nullptr && *from_environment != '\0') return from_environment;
  return default_library;
}

ErrorCode code_of(CUresult result) {
  switch (result) {
    case CUDA_ERROR_INVALID_VALUE:
    case CUDA_ERROR_INVALID_DEVICE:
    case CUDA_ERROR_INVALID_HANDLE:
    case CUDA_ERROR_INVALID_CONTEXT:
    case CUDA_ERROR_INVALID_PTX:
      return ErrorCode::InvalidArgument;
    case CUDA_ERROR_OUT_OF_MEMORY:
      return ErrorCode::ResourceExhausted;
    case CUDA_ERROR_NOT_FOUND:
      return ErrorCode::NotFound;
    case CUDA_ERROR_NOT_PERMITTED:
      return ErrorCode::PermissionDenied;
    case CUDA_ERROR_NOT_SUPPORTED:
    case CUDA_ERROR_UNSUPPORTED_EXEC_AFFINITY:
    case CUDA_ERROR_UNSUPPORTED_PTX_VERSION:
    case CUDA_ERROR_NO_BINARY_FOR_GPU:
    case CUDA_ERROR_SYSTEM_DRIVER_MISMATCH:
      return ErrorCode::Unsupported;
    case CUDA_ERROR_NO_DEVICE:
    case CUDA_ERROR_DEVICE_UNAVAILABLE:
    case CUDA_ERROR_SYSTEM_NOT_READY:
    case CUDA_ERROR_MPS_CONNECTION_FAILED:
    case CUDA_ERROR_MPS_SERVER_NOT_READY:
      return ErrorCode::Unavailable;
    default:
      return ErrorCode::Device;
  }
}

std::string hint_for(CUresult result) {
  switch (result) {
    case CUDA_ERROR_NO_DEVICE:
      return "nvidia-smi shows whether the driver sees a GPU";
    case CUDA_ERROR_SYSTEM_DRIVER_MISMATCH:
      return "the kernel module and libcuda are of different versions; reboot or reload the module";
    case CUDA_ERROR_MPS_CONNECTION_FAILED:
    case CUDA_ERROR_MPS_SERVER_NOT_READY:
      return "start the MPS control daemon of CUDA_MPS_PIPE_DIRECTORY, or unset that variable";
    default:
      return {};
  }
}

}  // namespace

Result<std::unique_ptr<const Driver>> Driver::load(const std::string& path) {
  const std::string library = choose_library(path);
  void* handle = dlopen(library.c_str(), RTLD_NOW | RTLD_LOCAL);
  if (handle == nullptr) {
    const char* why = dlerror();  // begins with the library's name
    return fail(ErrorCode::NotFound,
                std::string("cannot load the CUDA driver ") + (why ? why : library.c_str()),
                std::string("install the NVIDIA driver, or set ") + library_variable +
                    " to a libcuda.so.1, for example the software driver");
  }
  void* resolver = dlsym(handle, "cuGetProcAddress_v2");
  if (resolver == nullptr) {
    return fail(ErrorCode::Unsupported, library + " has no cuGetProcAddress_v2",
                "a driver for CUDA 12.0 or later (version 525) is needed");
  }
  auto table = resolve_entry_points(reinterpret_cast<PFN_cuGetProcAddress_v2>(resolver));
  if (!table) return propagate(table, library);
  return std::unique_ptr<const Driver>(new Driver(library, handle, *table));
}

Result<std::unique_ptr<const Driver>> Driver::in_front_of(const Driver& library,
                                                          PFN_cuGetProcAddress_v2 resolver) {
  auto table = resolve_entry_points(resolver);
  if (!table) return propagate(table, library.path_);
  return std::unique_ptr<const Driver>(new Driver(library.path_, library.library_, *table));
}

Result<std::unique_ptr<const Driver>> Driver::open(const std::string& path) {
  auto driver = load(path);
  if (!driver) return driver;
  const auto initialized = (*driver)->check((**driver)->cuInit(0), "cuInit");
  if (!initialized) return propagate(initialized);
  return driver;
}

void* Driver::symbol(const char* name) const { return dlsym(library_, name); }

Result<int> Driver::version() const {
  int version = 0;
  const auto status = check(table_.cuDriverGetVersion(&version), "cuDriverGetVersion");
  if (!status) return propagate(status);
  return version;
}

std::string Driver::error_name(CUresult result) const {
  const char* name = nullptr;
  if (table_.cuGetErrorName(result, &name) != CUDA_SUCCESS || name == nullptr) {
    return "CUDA error " + std::to_string(static_cast<int>(result));
  }
  return name;
}

Status Driver::check(CUresult result, std::string_view call) const {
  if (result == CUDA_SUCCESS) return {};
  std::string message(call);
  message += ": " + error_name(result) + " (" + std::to_string(static_cast<int>(result)) + ")";
  const char* text = nullptr;
  if (table_.cuGetErrorString(result, &text) == CUDA_SUCCESS && text != nullptr) {
    message += std::string(": ") + text;
  }
  return fail(code_of(result), std::move(message), hint_for(result));
}

bool is_fatal(CUresult result) {
  switch (result) {
    case CUDA_ERROR_ECC_UNCORRECTABLE:
    case CUDA_ERROR_NVLINK_UNCORRECTABLE:
    case CUDA_ERROR_CONTAINED:
    case CUDA_ERROR_ILLEGAL_ADDRESS:
    case CUDA_ERROR_LAUNCH_TIMEOUT:
    case CUDA_ERROR_ASSERT:
    case CUDA_ERROR_HARDWARE_STACK_ERROR:
    case CUDA_ERROR_ILLEGAL_INSTRUCTION:
    case CUDA_ERROR_MISALIGNED_ADDRESS:
    case CUDA_ERROR_INVALID_ADDRESS_SPACE:
    case CUDA_ERROR_INVALID_PC:
    case CUDA_ERROR_LAUNCH_FAILED:
    case CUDA_ERROR_MPS_RPC_FAILURE:
    case CUDA_ERROR_MPS_CLIENT_TERMINATED:
    case CUDA_ERROR_EXTERNAL_DEVICE:
      return true;
    default:
      return false;
  }
}

}  // namespace firebreak::cuda
