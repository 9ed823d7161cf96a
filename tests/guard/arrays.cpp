// SPDX-License-Identifier: Apache-2.0
/// A program that links against libcuda and makes arrays, or works in a green context. It says what the
/// driver answers, and how many allocations its own guard page has as alive. arrays [green|kept]
#include <sys/mman.h>

#include <array>
#include <cstdio>
#include <cstdlib>
#include <filesystem>
#include <string>
#include <type_traits>
#include <vector>

#include "shared/abi/cuda_arrays.h"
#include "shared/abi/cuda_driver_functions.h"
#include "shared/abi/cuda_green_contexts.h"
#include "shared/abi/guard_page.h"

extern "C" {
std::remove_pointer_t<PFN_cuInit> cuInit;
std::remove_pointer_t<PFN_cuCtxCreate_v2> cuCtxCreate_v2;
std::remove_pointer_t<PFN_cuCtxDestroy_v2> cuCtxDestroy_v2;
std::remove_pointer_t<PFN_cuCtxSetCurrent> cuCtxSetCurrent;
std::remove_pointer_t<PFN_cuCtxSynchronize> cuCtxSynchronize;
std::remove_pointer_t<PFN_cuDevicePrimaryCtxRetain> cuDevicePrimaryCtxRetain;
std::remove_pointer_t<PFN_cuDevicePrimaryCtxRelease_v2> cuDevicePrimaryCtxRelease_v2;
std::remove_pointer_t<PFN_cuMemAlloc_v2> cuMemAlloc_v2;
std::remove_pointer_t<PFN_cuMemAllocManaged> cuMemAllocManaged;
std::remove_pointer_t<PFN_cuMemFree_v2> cuMemFree_v2;
std::remove_pointer_t<PFN_cuMemsetD8Async> cuMemsetD8Async;
std::remove_pointer_t<PFN_cuMemcpyDtoH_v2> cuMemcpyDtoH_v2;
std::remove_pointer_t<PFN_cuMemcpy2D_v2> cuMemcpy2D_v2;
std::remove_pointer_t<PFN_cuStreamSynchronize> cuStreamSynchronize;
std::remove_pointer_t<PFN_cuArrayCreate_v2> cuArrayCreate_v2;
std::remove_pointer_t<PFN_cuArray3DCreate_v2> cuArray3DCreate_v2;
std::remove_pointer_t<PFN_cuArrayDestroy> cuArrayDestroy;
std::remove_pointer_t<PFN_cuMipmappedArrayCreate> cuMipmappedArrayCreate;
std::remove_pointer_t<PFN_cuMipmappedArrayDestroy> cuMipmappedArrayDestroy;
std::remove_pointer_t<PFN_cuDeviceGetDevResource> cuDeviceGetDevResource;
std::remove_pointer_t<PFN_cuDevSmResourceSplitByCount> cuDevSmResourceSplitByCount;
std::remove_pointer_t<PFN_cuDevResourceGenerateDesc> cuDevResourceGenerateDesc;
std::remove_pointer_t<PFN_cuGreenCtxCreate> cuGreenCtxCreate;
std::remove_pointer_t<PFN_cuGreenCtxDestroy> cuGreenCtxDestroy;
std::remove_pointer_t<PFN_cuGreenCtxStreamCreate> cuGreenCtxStreamCreate;
std::remove_pointer_t<PFN_cuCtxFromGreenCtx> cuCtxFromGreenCtx;
}

namespace {

using firebreak::abi::GuardPage;

const GuardPage* find_page() {
  for (const auto& entry : std::filesystem::directory_iterator("/proc/self/fd")) {
    std::error_code failed;
    const auto link = std::filesystem::read_symlink(entry.path(), failed).string();
    if (link != "/memfd:" + std::string(firebreak::abi::guard_page_name) + " (deleted)") continue;
    void* page = mmap(nullptr, sizeof(GuardPage), PROT_READ, MAP_SHARED,
                      std::atoi(entry.path().filename().c_str()), 0);
    return page == MAP_FAILED ? nullptr : static_cast<const GuardPage*>(page);
  }
  return nullptr;
}

/// How many allocations the page has as alive, and the bytes of all of them.
void say_alive(const char* when) {
  static const GuardPage* const page = find_page();
  unsigned int count = 0;
  unsigned long long bytes = 0;
  if (page == nullptr) return;
  for (const auto& allocation : page->allocation) {
    if (allocation.function.load() == 0 || allocation.freed_call.load() != 0) continue;
    ++count;
    bytes += allocation.size_bytes.load();
  }
  std::printf("%s: alive %u, bytes %llu\n", when, count, bytes);
}

void say(const char* call, CUresult result) { std::printf("%s %d\n", call, static_cast<int>(result)); }

/// Rows into an array and back.
bool keeps_what_it_is_given(CUarray array) {
  std::array<unsigned char, 64> there{};
  std::array<unsigned char, 64> back{};
  for (std::size_t i = 0; i < there.size(); ++i) there[i] = static_cast<unsigned char>(i + 1);
  CUDA_MEMCPY2D copy{};
  copy.srcMemoryType = CU_MEMORYTYPE_HOST;
  copy.srcHost = there.data();
  copy.srcPitch = 16;
  copy.dstMemoryType = CU_MEMORYTYPE_ARRAY;
  copy.dstArray = array;
  copy.dstY = 2;
  copy.WidthInBytes = 16;
  copy.Height = 4;
  if (cuMemcpy2D_v2(&copy) != CUDA_SUCCESS) return false;
  CUDA_MEMCPY2D other{};
  other.srcMemoryType = CU_MEMORYTYPE_ARRAY;
  other.srcArray = array;
  other.srcY = 2;
  other.dstMemoryType = CU_MEMORYTYPE_HOST;
  other.dstHost = back.data();
  other.dstPitch = 16;
  other.WidthInBytes = 16;
  other.Height = 4;
  return cuMemcpy2D_v2(&other) == CUDA_SUCCESS && back == there;
}

void make_arrays() {
  const CUDA_ARRAY_DESCRIPTOR flat{64, 32, CU_AD_FORMAT_FLOAT, 4};
  const CUDA_ARRAY3D_DESCRIPTOR deep{16, 8, 4, CU_AD_FORMAT_HALF, 2, 0};
  const CUDA_ARRAY3D_DESCRIPTOR largest{256, 256, 0, CU_AD_FORMAT_UNSIGNED_INT8, 1, 0};
  CUcontext context = nullptr;
  CUarray first = nullptr;
  CUarray second = nullptr;
  CUarray left = nullptr;
  CUmipmappedArray levels = nullptr;
  say("context", cuCtxCreate_v2(&context, 0, 0));
  say("array", cuArrayCreate_v2(&first, &flat));
  say_alive("one");
  std::printf("keeps what it is given %d\n", keeps_what_it_is_given(first));
  say("deep array", cuArray3DCreate_v2(&second, &deep));
  say("mipmapped array", cuMipmappedArrayCreate(&levels, &largest, 3));
  say_alive("three");
  say("destroy", cuArrayDestroy(first));
  say("destroy again", cuArrayDestroy(first));
  say("destroy deep", cuArrayDestroy(second));
  say_alive("mipmapped");
  say("destroy mipmapped", cuMipmappedArrayDestroy(levels));
  say_alive("none");
  say("left behind", cuArrayCreate_v2(&left, &flat));
  say_alive("left");
  say("gone", cuCtxDestroy_v2(context));
  say_alive("gone");
}

/// `kept`: the program has the primary context too, which outlives the green one.
void work_in_green_context(bool kept) {
  CUdevResource all{};
  CUdevResource part{};
  CUdevResourceDesc description = nullptr;
  CUcontext primary = nullptr;
  CUcontext context = nullptr;
  CUgreenCtx green = nullptr;
  CUstream stream = nullptr;
  unsigned int groups = 1;
  if (kept) say("primary", cuDevicePrimaryCtxRetain(&primary, 0));
  say("resource", cuDeviceGetDevResource(0, &all, CU_DEV_RESOURCE_TYPE_SM));
  say("split", cuDevSmResourceSplitByCount(&part, &groups, &all, nullptr, 0, 2));
  std::printf("groups %u, SMs %u\n", groups, part.sm.smCount);
  say("description", cuDevResourceGenerateDesc(&description, &part, 1));
  say("green context", cuGreenCtxCreate(&green, description, 0, CU_GREEN_CTX_DEFAULT_STREAM));
  say("context", cuCtxFromGreenCtx(&context, green));
  say("current", cuCtxSetCurrent(context));
  say("stream", cuGreenCtxStreamCreate(&stream, green, CU_STREAM_NON_BLOCKING, 0));
  CUdeviceptr memory = 0;
  CUdeviceptr managed = 0;
  unsigned char back = 0;
  say("allocate", cuMemAlloc_v2(&memory, 3 << 20));
  say("managed", cuMemAllocManaged(&managed, 4096, 1));
  say_alive("allocated");
  say("fill", cuMemsetD8Async(memory, 7, 3 << 20, stream));
  say("synchronize", cuStreamSynchronize(stream));
  say("read", cuMemcpyDtoH_v2(&back, memory + 5, 1));
  std::printf("read %d\n", back);
  say("destroy", cuGreenCtxDestroy(green));
  say_alive("destroyed");
  if (!kept) return;
  say("current", cuCtxSetCurrent(primary));
  say("read", cuMemcpyDtoH_v2(&back, memory + 6, 1));
  say("free", cuMemFree_v2(memory));
  say_alive("freed");
  say("release", cuDevicePrimaryCtxRelease_v2(0));
  say_alive("released");
}

}  // namespace

int main(int count, char** arguments) {
  const std::string what = count > 1 ? arguments[1] : "";
  say("init", cuInit(0));
  if (what.empty()) {
    make_arrays();
  } else {
    work_in_green_context(what == "kept");
  }
  return 0;
}
