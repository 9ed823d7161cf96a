// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "ground/base/result.h"
#include "ground/platform/nvml.h"

namespace firebreak::watch {

/// NVML, loaded at run time and initialized as long as this object lives. Thread safe, as NVML is.
class NvmlLibrary {
 public:
  /// NotFound: there is no such library, or it lacks a function. Unavailable: no driver answers it.
  static Result<std::unique_ptr<NvmlLibrary>> open(const std::string& name);
  /// Makes a library of functions that are had otherwise.
  static Result<std::unique_ptr<NvmlLibrary>> of(const abi::NvmlFunctions& functions);
  NvmlLibrary(const NvmlLibrary&) = delete;
  NvmlLibrary& operator=(const NvmlLibrary&) = delete;
  ~NvmlLibrary();

  const abi::NvmlFunctions& call() const { return functions_; }

 private:
  explicit NvmlLibrary(const abi::NvmlFunctions& functions) : functions_(functions) {}

  abi::NvmlFunctions functions_;
};

/// "0000:3b:00", as fault::pci_address() writes it; empty: that NVML does not tell it.
std::string address_of(const abi::NvmlFunctions& nvml, abi::nvmlDevice_t device);

struct NvmlGpu {
  std::string uuid;
  std::string pci;
  unsigned int compute_mode = abi::NVML_COMPUTEMODE_DEFAULT;  ///< the default one where NVML does not tell it
};

/// Returns all GPUs, in NVML's order; empty: it does not start, or does not tell them.
std::vector<NvmlGpu> gpus_listed_by_nvml(const std::string& library);

}  // namespace firebreak::watch
