// SPDX-License-Identifier: Apache-2.0
/// A program that links against libcuda and gives the GPU work in every way but launches. It says for each
/// call, found in each of three ways, how much more its own guard page counts afterwards.
#include <dlfcn.h>
#include <sys/mman.h>
#include <unistd.h>

#include <cstdio>
#include <cstdlib>
#include <filesystem>
#include <functional>
#include <string>
#include <vector>

#include "shared/abi/cuda_driver_functions.h"
#include "shared/abi/guard_page.h"

extern "C" {
CUresult cuInit(unsigned int);
CUresult cuCtxCreate_v2(CUcontext*, unsigned int, CUdevice);
CUresult cuCtxSetCurrent(CUcontext);
CUresult cuCtxSynchronize();
CUresult cuDevicePrimaryCtxRetain(CUcontext*, CUdevice);
CUresult cuDevicePrimaryCtxRelease(CUdevice);
CUresult cuDevicePrimaryCtxReset(CUdevice);
CUresult cuDevicePrimaryCtxReset_v2(CUdevice);
CUresult cuMemAllocManaged(CUdeviceptr*, std::size_t, unsigned int);
CUresult cuStreamCreate(CUstream*, unsigned int);
CUresult cuMemAlloc_v2(CUdeviceptr*, std::size_t);
CUresult cuMemHostAlloc(void**, std::size_t, unsigned int);
CUresult cuGetProcAddress_v2(const char*, void**, int, std::uint64_t, CUdriverProcAddressQueryResult*);
CUresult cuMemcpy(CUdeviceptr, CUdeviceptr, std::size_t);
CUresult cuMemcpyAsync(CUdeviceptr, CUdeviceptr, std::size_t, CUstream);
CUresult cuMemcpyHtoD_v2(CUdeviceptr, const void*, std::size_t);
CUresult cuMemcpyDtoH_v2(void*, CUdeviceptr, std::size_t);
CUresult cuMemcpyDtoD_v2(CUdeviceptr, CUdeviceptr, std::size_t);
CUresult cuMemcpyHtoDAsync_v2(CUdeviceptr, const void*, std::size_t, CUstream);
CUresult cuMemcpyDtoHAsync_v2(void*, CUdeviceptr, std::size_t, CUstream);
CUresult cuMemcpyDtoDAsync_v2(CUdeviceptr, CUdeviceptr, std::size_t, CUstream);
CUresult cuMemsetD8_v2(CUdeviceptr, unsigned char, std::size_t);
CUresult cuMemsetD16_v2(CUdeviceptr, unsigned short, std::size_t);
CUresult cuMemsetD32_v2(CUdeviceptr, unsigned int, std::size_t);
CUresult cuMemsetD8Async(CUdeviceptr, unsigned char, std::size_t, CUstream);
CUresult cuMemsetD16Async(CUdeviceptr, unsigned short, std::size_t, CUstream);
CUresult cuMemsetD32Async(CUdeviceptr, unsigned int, std::size_t, CUstream);
CUresult cuStreamWriteValue32_v2(CUstream, CUdeviceptr, std::uint32_t, unsigned int);
CUresult cuStreamWriteValue64_v2(CUstream, CUdeviceptr, std::uint64_t, unsigned int);
CUresult cuStreamWaitValue32_v2(CUstream, CUdeviceptr, std::uint32_t, unsigned int);
CUresult cuStreamWaitValue64_v2(CUstream, CUdeviceptr, std::uint64_t, unsigned int);
CUresult cuLaunchHostFunc(CUstream, CUhostFn, void*);
}

namespace {

const firebreak::abi::GuardPage* find_page() {
  for (const auto& entry : std::filesystem::directory_iterator("/proc/self/fd")) {
    std::error_code failed;
    const auto link = std::filesystem::read_symlink(entry.path(), failed).string();
    if (link != "/memfd:" + std::string(firebreak::abi::guard_page_name) + " (deleted)") continue;
    void* page = mmap(nullptr, sizeof(firebreak::abi::GuardPage), PROT_READ, MAP_SHARED,
                      std::atoi(entry.path().filename().c_str()), 0);
    return page == MAP_FAILED ? nullptr : static_cast<const firebreak::abi::GuardPage*>(page);
  }
  return nullptr;
}

unsigned int counted(const firebreak::abi::GuardPage& page) {
  unsigned int sum = 0;
  for (const auto& launches : page.work.launches) sum += launches.begun.load();
  return sum;
}

struct Memory {
  CUdeviceptr words = 0;
  void* host = nullptr;
  CUstream stream = nullptr;
};

/// One call: its name, and how it is made through a pointer to it.
struct Call {
  std::string symbol;
  std::string name;
  void* linked;
  std::function<CUresult(void*)> make;
};

template <class Function>
Call call(const char* symbol, Function* linked, const std::function<CUresult(Function*)>& make) {
  std::string name = symbol;
  if (name.ends_with("_v2")) name.resize(name.size() - 3);
  return {symbol, name, reinterpret_cast<void*>(linked),
          [make](void* function) { return make(reinterpret_cast<Function*>(function)); }};
}

std::vector<Call> copies(const Memory& m) {
  const CUdeviceptr to = m.words + 64;
  const auto async = [m](auto function) { return function(m.words + 64, m.words, 8, m.stream); };
  const auto sync = [m](auto function) { return function(m.words + 64, m.words, 8); };
  return {
      call<CUresult(CUdeviceptr, CUdeviceptr, std::size_t)>("cuMemcpy", &cuMemcpy, sync),
      call<CUresult(CUdeviceptr, CUdeviceptr, std::size_t)>("cuMemcpyDtoD_v2", &cuMemcpyDtoD_v2, sync),
      call<CUresult(CUdeviceptr, const void*, std::size_t)>("cuMemcpyHtoD_v2", &cuMemcpyHtoD_v2,
                                                            [=](auto f) { return f(to, m.host, 8); }),
      call<CUresult(void*, CUdeviceptr, std::size_t)>("cuMemcpyDtoH_v2", &cuMemcpyDtoH_v2,
                                                      [=](auto f) { return f(m.host, to, 8); }),
      call<CUresult(CUdeviceptr, CUdeviceptr, std::size_t, CUstream)>("cuMemcpyAsync", &cuMemcpyAsync, async),
      call<CUresult(CUdeviceptr, CUdeviceptr, std::size_t, CUstream)>("cuMemcpyDtoDAsync_v2",
                                                                      &cuMemcpyDtoDAsync_v2, async),
      call<CUresult(CUdeviceptr, const void*, std::size_t, CUstream)>(
          "cuMemcpyHtoDAsync_v2", &cuMemcpyHtoDAsync_v2, [=](auto f) { return f(to, m.host, 8, m.stream); }),
      call<CUresult(void*, CUdeviceptr, std::size_t, CUstream)>(
          "cuMemcpyDtoHAsync_v2", &cuMemcpyDtoHAsync_v2, [=](auto f) { return f(m.host, to, 8, m.stream); }),
  };
}

std::vector<Call> fills(const Memory& m) {
  const auto async = [m](auto function) { return function(m.words, 0, 2, m.stream); };
  const auto sync = [m](auto function) { return function(m.words, 0, 2); };
  return {
      call<CUresult(CUdeviceptr, unsigned char, std::size_t)>("cuMemsetD8_v2", &cuMemsetD8_v2, sync),
      call<CUresult(CUdeviceptr, unsigned short, std::size_t)>("cuMemsetD16_v2", &cuMemsetD16_v2, sync),
      call<CUresult(CUdeviceptr, unsigned int, std::size_t)>("cuMemsetD32_v2", &cuMemsetD32_v2, sync),
      call<CUresult(CUdeviceptr, unsigned char, std::size_t, CUstream)>("cuMemsetD8Async", &cuMemsetD8Async,
                                                                        async),
      call<CUresult(CUdeviceptr, unsigned short, std::size_t, CUstream)>("cuMemsetD16Async",
                                                                         &cuMemsetD16Async, async),
      call<CUresult(CUdeviceptr, unsigned int, std::size_t, CUstream)>("cuMemsetD32Async", &cuMemsetD32Async,
                                                                       async),
  };
}

void be_called(void*) {}

/// What is waited for is there already: zero, or more.
std::vector<Call> others(const Memory& m) {
  const auto value = [m](auto function) { return function(m.stream, m.words, 0, 0); };
  return {
      call<CUresult(CUstream, CUdeviceptr, std::uint32_t, unsigned int)>("cuStreamWriteValue32_v2",
                                                                         &cuStreamWriteValue32_v2, value),
      call<CUresult(CUstream, CUdeviceptr, std::uint64_t, unsigned int)>("cuStreamWriteValue64_v2",
                                                                         &cuStreamWriteValue64_v2, value),
      call<CUresult(CUstream, CUdeviceptr, std::uint32_t, unsigned int)>("cuStreamWaitValue32_v2",
                                                                         &cuStreamWaitValue32_v2, value),
      call<CUresult(CUstream, CUdeviceptr, std::uint64_t, unsigned int)>("cuStreamWaitValue64_v2",
                                                                         &cuStreamWaitValue64_v2, value),
      call<CUresult(CUstream, CUhostFn, void*)>("cuLaunchHostFunc", &cuLaunchHostFunc,
                                                [=](auto f) { return f(m.stream, &be_called, nullptr); }),
  };
}

void make(const Call& call, const char* found_by, void* function, const firebreak::abi::GuardPage& page) {
  const unsigned int before = counted(page);
  const CUresult result = function == nullptr ? CUDA_ERROR_NOT_FOUND : call.make(function);
  std::printf("%s %s: %d, counted %u\n", call.symbol.c_str(), found_by, static_cast<int>(result),
              counted(page) - before);
}

unsigned int alive(const firebreak::abi::GuardPage& page) {
  unsigned int sum = 0;
  for (const auto& allocation : page.allocation) {
    if (allocation.function.load() != 0 && allocation.freed_call.load() == 0) ++sum;
  }
  return sum;
}

/// What the page has of allocations of all sorts, before and after their context was reset.
int reset(CUresult (*end)(CUdevice)) {
  CUcontext context = nullptr;
  CUdeviceptr memory = 0;
  void* host = nullptr;
  if (cuInit(0) != CUDA_SUCCESS || cuDevicePrimaryCtxRetain(&context, 0) != CUDA_SUCCESS ||
      cuCtxSetCurrent(context) != CUDA_SUCCESS || cuMemAlloc_v2(&memory, 4096) != CUDA_SUCCESS ||
      cuMemAllocManaged(&memory, 4096, 1) != CUDA_SUCCESS || cuMemHostAlloc(&host, 4096, 0) != CUDA_SUCCESS)
    return 1;
  const auto* const page = find_page();
  if (page == nullptr) return 2;
  std::printf("alive %u\n", alive(*page));
  std::printf("reset %d\n", static_cast<int>(end(0)));
  std::printf("alive %u\n", alive(*page));
  return 0;
}

int work() {
  CUcontext context = nullptr;
  Memory memory;
  if (cuInit(0) != CUDA_SUCCESS || cuCtxCreate_v2(&context, 0, 0) != CUDA_SUCCESS ||
      cuMemAlloc_v2(&memory.words, 4096) != CUDA_SUCCESS ||
      cuMemHostAlloc(&memory.host, 4096, 0) != CUDA_SUCCESS ||
      cuStreamCreate(&memory.stream, CU_STREAM_NON_BLOCKING) != CUDA_SUCCESS)
    return 1;
  const auto* const page = find_page();
  if (page == nullptr) return 2;
  void* const library = dlopen("libcuda.so.1", RTLD_NOW | RTLD_NOLOAD);
  for (const auto& calls : {fills(memory), copies(memory), others(memory)}) {
    for (const Call& call : calls) {
      make(call, "linked", call.linked, *page);
      make(call, "by symbol", dlsym(library, call.symbol.c_str()), *page);
      void* function = nullptr;
      (void)cuGetProcAddress_v2(call.name.c_str(), &function, 12000, 0, nullptr);
      make(call, "by name", function, *page);
    }
  }
  std::printf("synchronize %d\n", static_cast<int>(cuCtxSynchronize()));
  return 0;
}

}  // namespace

/// "reset": says what its page has of memory that goes with its context; "reset-old" and "release-old":
/// by the functions of CUDA before 11.
int main(int count, char** arguments) {
  const std::string what = count > 1 ? arguments[1] : "";
  if (what == "reset") return reset(&cuDevicePrimaryCtxReset_v2);
  if (what == "release-old") return reset(&cuDevicePrimaryCtxRelease);
  return what == "reset-old" ? reset(&cuDevicePrimaryCtxReset) : work();
}
