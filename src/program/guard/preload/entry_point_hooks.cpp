// SPDX-License-Identifier: Apache-2.0
/// The functions that programs are given who look for the driver's by their names.
#include "program/guard/preload/hooks.h"
#include "program/guard/preload/process_driver.h"
#include "program/guard/preload/replacements.h"
#include "program/virtual/newer_functions.h"

namespace firebreak::guard::hooks {
namespace {

CUresult replaced(const Call& call, CUresult result, const char* symbol, void** function, int cuda_version,
                  std::uint64_t flags) {
  const bool none = symbol == nullptr || function == nullptr || *function == nullptr;
  if (result != CUDA_SUCCESS || none || Bypass::active()) return result;
  const auto ask = [&](int version) {
    void* known = nullptr;
    return call.driver.cuGetProcAddress(symbol, &known, version, flags) == CUDA_SUCCESS ? known : nullptr;
  };
  if (virtual_driver::is_newer_than_known(symbol, cuda_version, *function, ask)) return result;
  void* const ours = replacement_of_entry_point(symbol, cuda_version, flags);
  if (ours != nullptr) *function = ours;
  return result;
}

}  // namespace

CUresult cuGetProcAddress(const Call& call, const char* symbol, void** function, int cuda_version,
                          std::uint64_t flags) {
  return replaced(call, call.driver.cuGetProcAddress(symbol, function, cuda_version, flags), symbol, function,
                  cuda_version, flags);
}

CUresult cuGetProcAddress_v2(const Call& call, const char* symbol, void** function, int cuda_version,
                             std::uint64_t flags, CUdriverProcAddressQueryResult* found) {
  return replaced(call, call.driver.cuGetProcAddress_v2(symbol, function, cuda_version, flags, found), symbol,
                  function, cuda_version, flags);
}

}  // namespace firebreak::guard::hooks
