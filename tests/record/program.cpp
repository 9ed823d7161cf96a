// SPDX-License-Identifier: Apache-2.0
/// A program that launches known kernels of src/kernels/access/testdata (its argument) in each way that there
/// is. It ends with the number of its first call that failed.
#include <unistd.h>

#include <array>
#include <cstdint>
#include <fstream>
#include <iterator>
#include <string>

#include "shared/abi/cuda_driver_functions.h"

extern "C" {
CUresult cuInit(unsigned int);
CUresult cuCtxCreate_v2(CUcontext*, unsigned int, CUdevice);
CUresult cuCtxSynchronize();
CUresult cuMemAlloc_v2(CUdeviceptr*, std::size_t);
CUresult cuModuleLoadData(CUmodule*, const void*);
CUresult cuModuleGetFunction(CUfunction*, CUmodule, const char*);
CUresult cuLibraryLoadData(CUlibrary*, const void*, CUjit_option*, void**, unsigned int, CUlibraryOption*,
                           void**, unsigned int);
CUresult cuLibraryGetKernel(CUkernel*, CUlibrary, const char*);
CUresult cuKernelGetFunction(CUfunction*, CUkernel);
CUresult cuLaunchKernel(CUfunction, unsigned int, unsigned int, unsigned int, unsigned int, unsigned int,
                        unsigned int, unsigned int, CUstream, void**, void**);
CUresult cuLaunchKernelEx(const CUlaunchConfig*, CUfunction, void**, void**);
}

namespace {

// Of `kernels/what.ptx`; the text is gone when the function returns.
CUmodule load(const std::string& file) {
  std::ifstream text(file);
  const std::string content{std::istreambuf_iterator<char>(text), {}};
  CUmodule module = nullptr;
  return cuModuleLoadData(&module, content.c_str()) == CUDA_SUCCESS ? module : nullptr;
}

CUfunction function_in(CUmodule module, const char* name) {
  CUfunction function = nullptr;
  return cuModuleGetFunction(&function, module, name) == CUDA_SUCCESS ? function : nullptr;
}

CUfunction library_function(const std::string& file, const char* name) {
  std::ifstream text(file);
  const std::string content{std::istreambuf_iterator<char>(text), {}};
  CUlibrary library = nullptr;
  CUkernel kernel = nullptr;
  CUfunction function = nullptr;
  const bool is_found = cuLibraryLoadData(&library, content.c_str(), nullptr, nullptr, 0, nullptr, nullptr,
                                          0) == CUDA_SUCCESS &&
                        cuLibraryGetKernel(&kernel, library, name) == CUDA_SUCCESS &&
                        cuKernelGetFunction(&function, kernel) == CUDA_SUCCESS;
  return is_found ? function : nullptr;
}

struct Arguments {
  CUdeviceptr in = 0;
  CUdeviceptr out = 0;
  std::uint32_t count = 0;
};

bool launch(CUfunction function, Arguments arguments, int times) {
  std::array<void*, 3> each{&arguments.in, &arguments.out, &arguments.count};
  for (int i = 0; i < times; ++i)
    if (cuLaunchKernel(function, 2, 1, 1, 32, 1, 1, 0, nullptr, each.data(), nullptr) != CUDA_SUCCESS)
      return false;
  return true;
}

// With the arguments in one buffer, and a configuration.
bool launch_packed(CUfunction function, Arguments arguments, int times) {
  std::size_t size_bytes = sizeof(std::uint64_t) * 2 + sizeof(std::uint32_t);
  std::array<void*, 5> extra{reinterpret_cast<void*>(CU_LAUNCH_PARAM_BUFFER_POINTER_AS_INT), &arguments,
                             reinterpret_cast<void*>(CU_LAUNCH_PARAM_BUFFER_SIZE_AS_INT), &size_bytes,
                             nullptr};
  const CUlaunchConfig config{2, 1, 1, 32, 1, 1, 0, nullptr, nullptr, 0};
  for (int i = 0; i < times; ++i)
    if (cuLaunchKernelEx(&config, function, nullptr, extra.data()) != CUDA_SUCCESS) return false;
  return true;
}

int run(const std::string& kernels) {
  constexpr std::size_t buffer_bytes = 65'536;
  CUcontext context = nullptr;
  CUdeviceptr a = 0;
  CUdeviceptr b = 0;
  if (cuInit(0) != CUDA_SUCCESS || cuCtxCreate_v2(&context, 0, 0) != CUDA_SUCCESS) return 1;
  if (cuMemAlloc_v2(&a, buffer_bytes) != CUDA_SUCCESS || cuMemAlloc_v2(&b, buffer_bytes) != CUDA_SUCCESS)
    return 2;
  CUmodule in_place = load(kernels + "/in_place.ptx");
  CUmodule atomics = load(kernels + "/atomics.ptx");
  CUfunction gather = library_function(kernels + "/indirect.ptx", "gather");
  CUfunction index_in_shared = library_function(kernels + "/indirect.ptx", "index_in_shared");
  if (in_place == nullptr || atomics == nullptr || gather == nullptr || index_in_shared == nullptr) return 3;
  if (!launch(function_in(in_place, "scale"), {a, b, 64}, 3)) return 4;
  if (!launch(function_in(in_place, "scale"), {a, b, 0}, 2)) return 5;
  if (!launch(function_in(atomics, "histogram"), {a, b, 64}, 4)) return 6;
  if (!launch(gather, {a, b, 64}, 5)) return 7;
  if (!launch_packed(gather, {a, b, 64}, 6)) return 8;
  if (!launch_packed(gather, {a, a + 252, 64}, 7)) return 9;
  if (!launch(index_in_shared, {a, a, 64}, 8)) return 10;
  return cuCtxSynchronize() == CUDA_SUCCESS ? 0 : 11;
}

}  // namespace

int main(int argument_count, char** arguments) {
  // As a process that is killed: nothing is done at its end.
  ::_exit(argument_count > 1 ? run(arguments[1]) : 12);
}
