// SPDX-License-Identifier: Apache-2.0
/// A program that links against libcuda, makes one allocation of a sort, and stores far from it: "SORT past
/// GIB" behind its end, "SORT before GIB" before its begin. It says what the driver answered.
#include <sys/mman.h>
#include <sys/resource.h>

#include <array>
#include <cstdio>
#include <cstdlib>
#include <string>

#include "shared/abi/cuda_driver_functions.h"

extern "C" {
CUresult cuInit(unsigned int);
CUresult cuCtxCreate_v2(CUcontext*, unsigned int, CUdevice);
CUresult cuCtxSynchronize();
CUresult cuModuleLoadDataEx(CUmodule*, const void*, unsigned int, CUjit_option*, void**);
CUresult cuModuleGetFunction(CUfunction*, CUmodule, const char*);
CUresult cuMemAlloc_v2(CUdeviceptr*, std::size_t);
CUresult cuMemAllocManaged(CUdeviceptr*, std::size_t, unsigned int);
CUresult cuMemAllocAsync(CUdeviceptr*, std::size_t, CUstream);
CUresult cuMemHostAlloc(void**, std::size_t, unsigned int);
CUresult cuMemAddressReserve(CUdeviceptr*, std::size_t, std::size_t, CUdeviceptr, unsigned long long);
CUresult cuMemCreate(CUmemGenericAllocationHandle*, std::size_t, const CUmemAllocationProp*,
                     unsigned long long);
CUresult cuMemMap(CUdeviceptr, std::size_t, std::size_t, CUmemGenericAllocationHandle, unsigned long long);
CUresult cuMemSetAccess(CUdeviceptr, std::size_t, const CUmemAccessDesc*, std::size_t);
CUresult cuLaunchKernel(CUfunction, unsigned int, unsigned int, unsigned int, unsigned int, unsigned int,
                        unsigned int, unsigned int, CUstream, void**, void**);
}

namespace {

constexpr const char* ptx = R"(.version 7.0
.target sm_70
.address_size 64

.visible .entry store(.param .u64 word)
{
  .reg .u64 %word;
  ld.param.u64 %word, [word];
  st.volatile.u32 [%word], 1;
  ret;
}
)";

constexpr std::size_t mib = std::size_t{1} << 20;
constexpr std::size_t gib = mib << 10;

struct Allocation {
  CUdeviceptr begin = 0;
  std::size_t size_bytes = 64 * mib;
};

/// 64 MiB in the middle of what it has reserved.
CUresult map_some(Allocation* allocation) {
  const CUmemAllocationProp device{
      CU_MEM_ALLOCATION_TYPE_PINNED, {}, {CU_MEM_LOCATION_TYPE_DEVICE, 0}, nullptr, {}};
  const CUmemAccessDesc all{device.location, CU_MEM_ACCESS_FLAGS_PROT_READWRITE};
  CUmemGenericAllocationHandle memory = 0;
  const std::size_t size_bytes = allocation->size_bytes;
  CUresult result = cuMemAddressReserve(&allocation->begin, 3 * size_bytes, 0, 0, 0);
  if (result == CUDA_SUCCESS) result = cuMemCreate(&memory, size_bytes, &device, 0);
  allocation->begin += size_bytes;
  if (result == CUDA_SUCCESS) result = cuMemMap(allocation->begin, size_bytes, 0, memory, 0);
  return result == CUDA_SUCCESS ? cuMemSetAccess(allocation->begin, size_bytes, &all, 1) : result;
}

CUresult allocate(const std::string& sort, Allocation* allocation) {
  if (sort == "small") allocation->size_bytes = 4096;
  if (sort == "managed") return cuMemAllocManaged(&allocation->begin, allocation->size_bytes, 1);
  if (sort == "pool") return cuMemAllocAsync(&allocation->begin, allocation->size_bytes, nullptr);
  if (sort == "mapped") return map_some(allocation);
  if (sort != "pinned") return cuMemAlloc_v2(&allocation->begin, allocation->size_bytes);
  void* host = nullptr;
  const CUresult result = cuMemHostAlloc(&host, allocation->size_bytes, 0);
  allocation->begin = reinterpret_cast<CUdeviceptr>(host);
  return result;
}

CUresult store(CUdeviceptr word) {
  CUmodule module = nullptr;
  CUfunction function = nullptr;
  std::array<void*, 1> arguments{&word};
  CUresult result = cuModuleLoadDataEx(&module, ptx, 0, nullptr, nullptr);
  if (result == CUDA_SUCCESS) result = cuModuleGetFunction(&function, module, "store");
  if (result == CUDA_SUCCESS)
    result = cuLaunchKernel(function, 1, 1, 1, 1, 1, 1, 0, nullptr, arguments.data(), nullptr);
  return result == CUDA_SUCCESS ? cuCtxSynchronize() : result;
}

/// The program's own mappings under a limit of 40 GiB of addresses.
int be_limited() {
  const rlimit limit{40 * gib, 40 * gib};
  CUcontext context = nullptr;
  Allocation allocation;
  if (setrlimit(RLIMIT_AS, &limit) != 0 || cuInit(0) != CUDA_SUCCESS ||
      cuCtxCreate_v2(&context, 0, 0) != CUDA_SUCCESS || allocate("large", &allocation) != CUDA_SUCCESS)
    return 1;
  const void* own = mmap(nullptr, 20 * gib, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  std::printf("mapped %d\n", own != MAP_FAILED);
  std::printf("store %d\n", static_cast<int>(store(allocation.begin + allocation.size_bytes + gib)));
  return 0;
}

/// Addresses far behind an allocation are the program's to reserve as before.
int reserve_behind() {
  Allocation allocation;
  CUdeviceptr reserved = 0;
  if (allocate("large", &allocation) != CUDA_SUCCESS) return 1;
  const CUdeviceptr wanted = (allocation.begin + 40 * gib) / (2 * mib) * (2 * mib);
  const CUresult result = cuMemAddressReserve(&reserved, gib, 0, wanted, 0);
  std::printf("reserved %d, as wanted %d\n", static_cast<int>(result), reserved == wanted);
  for (const CUdeviceptr word : {wanted + gib + 64, wanted - 64, wanted + 64})
    std::printf("store %d\n", static_cast<int>(store(word)));
  return 0;
}

}  // namespace

int main(int count, char** arguments) {
  CUcontext context = nullptr;
  if (count == 2 && std::string(arguments[1]) == "limited") return be_limited();
  if (count < 2 || cuInit(0) != CUDA_SUCCESS || cuCtxCreate_v2(&context, 0, 0) != CUDA_SUCCESS) return 1;
  if (std::string(arguments[1]) == "reserve") return reserve_behind();
  Allocation allocation;
  if (count != 4 || allocate(arguments[1], &allocation) != CUDA_SUCCESS) return 1;
  const std::size_t distance_bytes = std::strtoull(arguments[3], nullptr, 10) * gib;
  const bool before = std::string(arguments[2]) == "before";
  const CUdeviceptr end = allocation.begin + allocation.size_bytes;
  const CUdeviceptr word = before ? allocation.begin - distance_bytes : end + distance_bytes - 4;
  std::printf("store %d\n", static_cast<int>(store(word)));
  return 0;
}
