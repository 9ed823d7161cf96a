// SPDX-License-Identifier: Apache-2.0
/// A program that asks for every function of the driver's in each way that there is, and says which it was
/// not given as the guard's list of hooks has it: whose they are is told by the library that they lie in.
#include <dlfcn.h>

#include <cstdio>
#include <string>
#include <string_view>

#include "program/guard/preload/ways.h"
#include "shared/abi/cuda_api.h"
#include "shared/abi/cuda_driver.h"

extern "C" {
CUresult cuInit(unsigned int);
CUresult cuGetProcAddress_v2(const char*, void**, int, std::uint64_t, CUdriverProcAddressQueryResult*);
}

namespace {

using firebreak::abi::CudaFunction;

bool is_guards(const void* function) {
  Dl_info found{};
  return function != nullptr && dladdr(function, &found) != 0 &&
         std::string_view(found.dli_fname).find("libfirebreak-guard.so") != std::string_view::npos;
}

const void* by_name(const CudaFunction& function, std::uint64_t flags) {
  void* found = nullptr;
  (void)cuGetProcAddress_v2(std::string(function.name).c_str(), &found, function.since, flags, nullptr);
  return found;
}

}  // namespace

int main() {
  // The first that is asked for is no function of the driver's, though it begins as they do.
  void* const c_library = dlopen("libc.so.6", RTLD_NOW | RTLD_NOLOAD);
  if (c_library == nullptr || dlsym(c_library, "cuserid") == nullptr) return 1;
  if (cuInit(0) != CUDA_SUCCESS) return 1;
  void* const library = dlopen("libcuda.so.1", RTLD_NOW | RTLD_NOLOAD);
  const auto by_symbol = [library](std::string_view symbol) {
    return dlsym(library, std::string(symbol).c_str());
  };
  unsigned int hooked = 0;
  for (const CudaFunction& function : firebreak::abi::cuda_functions()) {
    const bool wanted = firebreak::guard::way_of(function).is_hooked();
    const bool has_two = !function.per_thread_symbol.empty();
    const auto check = [&](const void* given, const char* way) {
      if (is_guards(given) != wanted)
        std::printf("%s %s: the guard's %d\n", std::string(function.symbol).c_str(), way, !wanted);
      if (wanted) ++hooked;
    };
    check(by_symbol(function.symbol), "by symbol");
    if (has_two) check(by_symbol(function.per_thread_symbol), "by its other symbol");
    check(by_name(function, 0), "by name");
    check(by_name(function, CU_GET_PROC_ADDRESS_PER_THREAD_DEFAULT_STREAM), "by name, for its own stream");
  }
  std::printf("hooked %d\n", hooked > 300);
  return 0;
}
