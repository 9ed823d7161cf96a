// SPDX-License-Identifier: Apache-2.0
#include "agent/faults/watch/nvml_library.h"

#include <fmt/format.h>

#include <array>

#include "agent/faults/fault/fault.h"
#include "ground/os/self.h"

namespace firebreak::watch {
namespace {

template <class Function>
Status find(const std::string& library, const char* name, Function& function) {
  const Result<void*> symbol = os::load_symbol(library, name);
  if (!symbol) return propagate(symbol);
  function = reinterpret_cast<Function>(*symbol);
  return {};
}

Result<abi::NvmlFunctions> load(const std::string& library) {
  abi::NvmlFunctions functions{};
  Status done;
  const auto need = [&](const char* name, auto& function) {
    if (done) done = find(library, name, function);
  };
  need("nvmlInit_v2", functions.nvmlInit_v2);
  need("nvmlShutdown", functions.nvmlShutdown);
  need("nvmlDeviceGetCount_v2", functions.nvmlDeviceGetCount_v2);
  need("nvmlDeviceGetHandleByIndex_v2", functions.nvmlDeviceGetHandleByIndex_v2);
  need("nvmlDeviceGetIndex", functions.nvmlDeviceGetIndex);
  need("nvmlDeviceGetMemoryInfo", functions.nvmlDeviceGetMemoryInfo);
  need("nvmlEventSetCreate", functions.nvmlEventSetCreate);
  need("nvmlDeviceGetSupportedEventTypes", functions.nvmlDeviceGetSupportedEventTypes);
  need("nvmlDeviceRegisterEvents", functions.nvmlDeviceRegisterEvents);
  need("nvmlEventSetWait_v2", functions.nvmlEventSetWait_v2);
  need("nvmlEventSetFree", functions.nvmlEventSetFree);
  if (!done) return propagate(done);
  (void)find(library, "nvmlDeviceGetComputeRunningProcesses_v3",
             functions.nvmlDeviceGetComputeRunningProcesses_v3);
  (void)find(library, "nvmlDeviceGetPciInfo_v3", functions.nvmlDeviceGetPciInfo_v3);
  (void)find(library, "nvmlDeviceGetUUID", functions.nvmlDeviceGetUUID);
  (void)find(library, "nvmlDeviceGetComputeMode", functions.nvmlDeviceGetComputeMode);
  return functions;
}

}  // namespace

Result<std::unique_ptr<NvmlLibrary>> NvmlLibrary::open(const std::string& name) {
  const Result<abi::NvmlFunctions> functions = load(name);
  if (!functions) {
    return fail(functions.error().code, "no NVML events: " + functions.error().message,
                "install the driver's " + std::string(abi::nvml_library_name));
  }
  return of(*functions);
}

Result<std::unique_ptr<NvmlLibrary>> NvmlLibrary::of(const abi::NvmlFunctions& functions) {
  const abi::nvmlReturn_t status = functions.nvmlInit_v2();
  if (status != abi::NVML_SUCCESS) {
    return fail(ErrorCode::Unavailable,
                "no NVML events: NVML does not start (" + std::to_string(status) + ")");
  }
  return std::unique_ptr<NvmlLibrary>(new NvmlLibrary(functions));
}

NvmlLibrary::~NvmlLibrary() { functions_.nvmlShutdown(); }

std::string address_of(const abi::NvmlFunctions& nvml, abi::nvmlDevice_t device) {
  abi::nvmlPciInfo_t pci{};
  if (nvml.nvmlDeviceGetPciInfo_v3 == nullptr ||
      nvml.nvmlDeviceGetPciInfo_v3(device, &pci) != abi::NVML_SUCCESS)
    return {};
  return fault::pci_address(fmt::format("{:x}:{:x}:{:x}", pci.domain, pci.bus, pci.device));
}

std::vector<NvmlGpu> gpus_listed_by_nvml(const std::string& library) {
  const auto opened = NvmlLibrary::open(library);
  unsigned int count = 0;
  if (!opened || (*opened)->call().nvmlDeviceGetCount_v2(&count) != abi::NVML_SUCCESS) return {};
  const abi::NvmlFunctions& nvml = (*opened)->call();
  std::vector<NvmlGpu> all;
  for (unsigned int index = 0; index < count; ++index) {
    abi::nvmlDevice_t device = nullptr;
    std::array<char, abi::nvml_uuid_bytes> uuid{};
    const bool has_uuid = nvml.nvmlDeviceGetUUID != nullptr &&
                          nvml.nvmlDeviceGetHandleByIndex_v2(index, &device) == abi::NVML_SUCCESS &&
                          nvml.nvmlDeviceGetUUID(device, uuid.data(), uuid.size()) == abi::NVML_SUCCESS;
    NvmlGpu gpu{.uuid = has_uuid ? uuid.data() : "", .pci = has_uuid ? address_of(nvml, device) : ""};
    if (gpu.pci.empty()) return {};  // a list with gaps would make another of one
    if (nvml.nvmlDeviceGetComputeMode != nullptr)
      (void)nvml.nvmlDeviceGetComputeMode(device, &gpu.compute_mode);
    all.push_back(std::move(gpu));
  }
  return all;
}

}  // namespace firebreak::watch
