// SPDX-License-Identifier: Apache-2.0
#include "agent/faults/watch/nvml_library.h"

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

}  // namespace firebreak::watch
