// SPDX-License-Identifier: Apache-2.0
#include "program/cuda/entry_points.h"

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

}  // namespace

Result<EntryPoints> resolve_entry_points(PFN_cuGetProcAddress_v2 get_proc_address) {
  Resolver resolve(get_proc_address);
  EntryPoints table;
#define CUDA_NEEDED(name, symbol) resolve(#name, table.name);
#include "program/cuda/needed.def"
#undef CUDA_NEEDED
  if (!resolve.missing().empty()) {
    return fail(ErrorCode::Unsupported, "the CUDA driver has no " + resolve.missing(),
                "a driver for CUDA 12.0 or later (version 525) is needed");
  }
  return table;
}

}  // namespace firebreak::cuda
