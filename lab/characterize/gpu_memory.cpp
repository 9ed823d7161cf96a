// SPDX-License-Identifier: Apache-2.0
#include "characterize/gpu_memory.h"

namespace firebreak::characterize {
namespace {

Status check(abi::nvmlReturn_t status) {
  if (status == abi::NVML_SUCCESS) return {};
  return fail(ErrorCode::Unavailable, "NVML does not tell the GPU's memory (" + std::to_string(status) + ")");
}

}  // namespace

Result<GpuMemory> GpuMemory::open(const std::string& nvml_library) {
  auto library = watch::NvmlLibrary::open(nvml_library);
  if (!library) return propagate(library);
  abi::nvmlDevice_t device{};
  if (Status found = check((*library)->call().nvmlDeviceGetHandleByIndex_v2(0, &device)); !found) {
    return propagate(found);
  }
  return GpuMemory(std::move(*library), device);
}

Result<std::int64_t> GpuMemory::used_bytes() const {
  abi::nvmlMemory_t memory{};
  if (Status read = check(library_->call().nvmlDeviceGetMemoryInfo(device_, &memory)); !read) {
    return propagate(read);
  }
  return static_cast<std::int64_t>(memory.used);
}

}  // namespace firebreak::characterize
