// SPDX-License-Identifier: Apache-2.0
/// Entry points that no program of the project uses, and what must hold between streams.
#include <dlfcn.h>
#include <gmock/gmock.h>

#include <array>
#include <atomic>
#include <cstdint>
#include <cstdlib>
#include <fstream>
#include <string>
#include <utility>

#include "ground/os/addresses.h"
#include "ground/os/file.h"
#include "ground/os/self.h"
#include "shared/abi/cuda_api.h"
#include "shared/abi/cuda_arrays.h"
#include "shared/abi/cuda_driver_functions.h"
#include "tests/softgpu_driver/kernels.h"

namespace firebreak::test {
namespace {

class Api : public ::testing::Test {
 protected:
  Api() {
    setenv("FIREBREAK_SOFTGPU_DIR", (directory_.path() + "/gpu").c_str(), 1);
    setenv("CUDA_MPS_PIPE_DIRECTORY", (directory_.path() + "/none").c_str(), 1);
    EXPECT_EQ(entry<PFN_cuInit>("cuInit")(0), CUDA_SUCCESS);
    EXPECT_EQ(entry<PFN_cuCtxCreate_v2>("cuCtxCreate_v2")(&context_, 0, 0), CUDA_SUCCESS);
  }
  ~Api() override { EXPECT_EQ(entry<PFN_cuCtxDestroy_v2>("cuCtxDestroy_v2")(context_), CUDA_SUCCESS); }

  template <class Pointer>
  Pointer entry(const char* name) {
    return reinterpret_cast<Pointer>(::dlsym(library_, name));
  }
  CUstream stream(unsigned int flags) {
    CUstream created = nullptr;
    EXPECT_EQ(entry<PFN_cuStreamCreate>("cuStreamCreate")(&created, flags), CUDA_SUCCESS);
    return created;
  }
  std::uint32_t* pinned_words() {
    void* host = nullptr;
    EXPECT_EQ(entry<PFN_cuMemAllocHost_v2>("cuMemAllocHost_v2")(&host, 4096), CUDA_SUCCESS);
    return static_cast<std::uint32_t*>(host);
  }
  CUresult wait_for_one(CUstream on, std::uint32_t* word) {
    return entry<PFN_cuStreamWaitValue32_v2>("cuStreamWaitValue32_v2")(
        on, reinterpret_cast<CUdeviceptr>(word), 1, CU_STREAM_WAIT_VALUE_EQ);
  }
  CUresult query(CUstream of) { return entry<PFN_cuStreamQuery>("cuStreamQuery")(of); }
  CUresult synchronize(CUstream with) { return entry<PFN_cuStreamSynchronize>("cuStreamSynchronize")(with); }
  CUresult fill(CUdeviceptr words, unsigned int value, CUstream on) {
    return entry<PFN_cuMemsetD32Async>("cuMemsetD32Async")(words, value, 1, on);
  }

  os::TemporaryDirectory directory_ = std::move(os::TemporaryDirectory::create().value());
  void* library_ = ::dlopen(FIREBREAK_SOFTGPU_LIBRARY, RTLD_NOW);
  CUcontext context_ = nullptr;
};

TEST_F(Api, LegacyStreamWaitsForBlockingStreamsAndTheyForIt) {
  std::uint32_t* words = pinned_words();
  const auto second_word = reinterpret_cast<CUdeviceptr>(words + 1);
  const CUstream blocking = stream(CU_STREAM_DEFAULT);
  const CUstream free = stream(CU_STREAM_NON_BLOCKING);
  ASSERT_EQ(wait_for_one(blocking, words), CUDA_SUCCESS);
  ASSERT_EQ(fill(second_word, 5, nullptr), CUDA_SUCCESS);
  const CUstream later = stream(CU_STREAM_DEFAULT);
  ASSERT_EQ(fill(second_word + 4, 6, later), CUDA_SUCCESS);
  ASSERT_EQ(fill(second_word + 8, 7, free), CUDA_SUCCESS);
  EXPECT_EQ(synchronize(free), CUDA_SUCCESS);
  EXPECT_EQ(query(nullptr), CUDA_ERROR_NOT_READY);
  EXPECT_EQ(query(later), CUDA_ERROR_NOT_READY);
  EXPECT_EQ(words[3], 7u);
  EXPECT_EQ(words[1], 0u);
  std::atomic_ref(words[0]).store(1);
  EXPECT_EQ(synchronize(later), CUDA_SUCCESS);
  EXPECT_EQ(words[1], 5u);
  EXPECT_EQ(words[2], 6u);
}

TEST_F(Api, WorkOfAStreamThatIsDestroyedIsStillWaitedFor) {
  std::uint32_t* words = pinned_words();
  const auto second_word = reinterpret_cast<CUdeviceptr>(words + 1);
  const CUstream ended = stream(CU_STREAM_DEFAULT);
  const CUstream ended_too = stream(CU_STREAM_NON_BLOCKING);
  ASSERT_EQ(wait_for_one(ended, words), CUDA_SUCCESS);
  ASSERT_EQ(fill(second_word, 5, ended), CUDA_SUCCESS);
  ASSERT_EQ(wait_for_one(ended_too, words), CUDA_SUCCESS);
  ASSERT_EQ(fill(second_word + 4, 6, ended_too), CUDA_SUCCESS);
  EXPECT_EQ(entry<PFN_cuStreamDestroy_v2>("cuStreamDestroy_v2")(ended), CUDA_SUCCESS);
  EXPECT_EQ(entry<PFN_cuStreamDestroy_v2>("cuStreamDestroy_v2")(ended_too), CUDA_SUCCESS);
  ASSERT_EQ(fill(second_word + 8, 7, nullptr), CUDA_SUCCESS);
  EXPECT_EQ(query(nullptr), CUDA_ERROR_NOT_READY) << "the legacy stream is behind the first";
  std::atomic_ref(words[0]).store(1);
  EXPECT_EQ(entry<PFN_cuCtxSynchronize>("cuCtxSynchronize")(), CUDA_SUCCESS);
  EXPECT_EQ(words[1], 5u);
  EXPECT_EQ(words[2], 6u);
  EXPECT_EQ(words[3], 7u);
}

TEST_F(Api, PageableMemoryMayChangeAfterAnAsynchronousCopy) {
  CUdeviceptr device = 0;
  ASSERT_EQ(entry<PFN_cuMemAlloc_v2>("cuMemAlloc_v2")(&device, 4), CUDA_SUCCESS);
  std::uint32_t* gate = pinned_words();
  const CUstream on = stream(CU_STREAM_NON_BLOCKING);
  ASSERT_EQ(wait_for_one(on, gate), CUDA_SUCCESS);
  std::uint32_t value = 11;
  ASSERT_EQ(entry<PFN_cuMemcpyHtoDAsync_v2>("cuMemcpyHtoDAsync_v2")(device, &value, 4, on), CUDA_SUCCESS);
  value = 12;
  std::atomic_ref(*gate).store(1);
  std::uint32_t back = 0;
  ASSERT_EQ(entry<PFN_cuMemcpyDtoHAsync_v2>("cuMemcpyDtoHAsync_v2")(&back, device, 4, on), CUDA_SUCCESS);
  EXPECT_EQ(back, 11u);
}

TEST_F(Api, ParametersMayComeInOneBuffer) {
  CUmodule module = nullptr;
  CUfunction function = nullptr;
  std::uint32_t* words = pinned_words();
  ASSERT_EQ(entry<PFN_cuModuleLoadData>("cuModuleLoadData")(&module, kernels), CUDA_SUCCESS);
  ASSERT_EQ(entry<PFN_cuModuleGetFunction>("cuModuleGetFunction")(&function, module, "add_one"),
            CUDA_SUCCESS);
  auto address = reinterpret_cast<CUdeviceptr>(words);
  std::size_t size_bytes = sizeof(address);
  void* extra[] = {reinterpret_cast<void*>(CU_LAUNCH_PARAM_BUFFER_POINTER_AS_INT), &address,
                   reinterpret_cast<void*>(CU_LAUNCH_PARAM_BUFFER_SIZE_AS_INT), &size_bytes,
                   reinterpret_cast<void*>(CU_LAUNCH_PARAM_END_AS_INT)};
  const auto launch = entry<PFN_cuLaunchKernel>("cuLaunchKernel");
  EXPECT_EQ(launch(function, 3, 1, 1, 2, 1, 1, 0, nullptr, nullptr, extra), CUDA_SUCCESS);
  EXPECT_EQ(synchronize(nullptr), CUDA_SUCCESS);
  EXPECT_EQ(words[0], 6u);
  EXPECT_EQ(launch(function, 0, 1, 1, 2, 1, 1, 0, nullptr, nullptr, extra), CUDA_ERROR_INVALID_VALUE);
  EXPECT_EQ(launch(function, 1, 1, 1, 2048, 1, 1, 0, nullptr, nullptr, extra), CUDA_ERROR_INVALID_VALUE);
  EXPECT_EQ(launch(nullptr, 1, 1, 1, 1, 1, 1, 0, nullptr, nullptr, extra), CUDA_ERROR_INVALID_HANDLE);
}

TEST_F(Api, NamesAreFoundInTheVersionThatWasAskedFor) {
  const auto find = entry<PFN_cuGetProcAddress_v2>("cuGetProcAddress_v2");
  CUdriverProcAddressQueryResult found{};
  auto symbol = [&](const char* name, int version) {
    void* function = nullptr;
    EXPECT_EQ(find(name, &function, version, 0, &found), CUDA_SUCCESS);
    return function;
  };
  EXPECT_EQ(symbol("cuMemAlloc", 12000), ::dlsym(library_, "cuMemAlloc_v2"));
  EXPECT_EQ(symbol("cuMemAlloc_v2", 12000), ::dlsym(library_, "cuMemAlloc_v2"));
  EXPECT_EQ(symbol("cuCtxCreate", 12000), ::dlsym(library_, "cuCtxCreate_v3"));
  EXPECT_EQ(symbol("cuCtxCreate", 13000), ::dlsym(library_, "cuCtxCreate_v4"));
  EXPECT_EQ(symbol("cuMakeCoffee", 13000), nullptr);
  EXPECT_EQ(found, CU_GET_PROC_ADDRESS_SYMBOL_NOT_FOUND);
  EXPECT_EQ(symbol("cuCtxCreate", 12049), ::dlsym(library_, "cuCtxCreate_v3"));
  EXPECT_EQ(symbol("cuCtxCreate", 12050), ::dlsym(library_, "cuCtxCreate_v4"));
  EXPECT_EQ(symbol("cuGetProcAddress", 11020), nullptr);
  EXPECT_EQ(found, CU_GET_PROC_ADDRESS_VERSION_NOT_SUFFICIENT);
}

TEST_F(Api, AVersionThatItLacksIsNotAnsweredWithAnotherOne) {
  const auto find = entry<PFN_cuGetProcAddress_v2>("cuGetProcAddress_v2");
  void* function = nullptr;
  CUdriverProcAddressQueryResult found{};
  ASSERT_EQ(find("cuMemAdvise", &function, 12000, 0, &found), CUDA_SUCCESS);
  ASSERT_EQ(function, ::dlsym(library_, "cuMemAdvise"));
  EXPECT_EQ(find("cuMemAdvise", &function, 13000, 0, &found), CUDA_SUCCESS);
  EXPECT_EQ(function, ::dlsym(library_, "cuMemAdvise_v2"));
  EXPECT_EQ(reinterpret_cast<PFN_cuMemAdvise_v2>(function)(1, 1, CU_MEM_ADVISE_SET_PREFERRED_LOCATION, {}),
            CUDA_ERROR_NOT_SUPPORTED);
}

TEST_F(Api, EverySymbolAndNameOfTheTableIsThere) {
  const auto find = entry<PFN_cuGetProcAddress_v2>("cuGetProcAddress_v2");
  const auto symbol = [&](std::string_view name) { return ::dlsym(library_, std::string(name).c_str()); };
  for (const abi::CudaFunction& each : abi::cuda_functions()) {
    const bool differs = !each.per_thread_symbol.empty();
    const auto own = differs ? each.per_thread_symbol : each.symbol;
    EXPECT_NE(symbol(each.symbol), nullptr) << each.symbol;
    EXPECT_NE(symbol(own), nullptr) << own;
    EXPECT_EQ(symbol(each.symbol) != symbol(own), differs) << each.symbol;
    CUdriverProcAddressQueryResult found{};
    void* function = nullptr;
    EXPECT_EQ(find(std::string(each.name).c_str(), &function, each.since, 0, &found), CUDA_SUCCESS);
    EXPECT_EQ(function, symbol(each.symbol)) << each.symbol;
    EXPECT_EQ(find(std::string(each.name).c_str(), &function, each.since,
                   CU_GET_PROC_ADDRESS_PER_THREAD_DEFAULT_STREAM, &found),
              CUDA_SUCCESS);
    EXPECT_EQ(function, symbol(own)) << each.symbol;
  }
}

// The kernel-less gate holds a blocking stream: who waits for the legacy default stream waits for it as well.
TEST_F(Api, NullIsTheThreadsOwnStreamForWhoAskedForThat) {
  std::uint32_t* words = pinned_words();
  const auto second_word = reinterpret_cast<CUdeviceptr>(words + 1);
  const CUstream blocking = stream(CU_STREAM_DEFAULT);
  ASSERT_EQ(wait_for_one(blocking, words), CUDA_SUCCESS);
  EXPECT_EQ(entry<PFN_cuMemsetD32Async>("cuMemsetD32Async_ptsz")(second_word, 5, 1, nullptr), CUDA_SUCCESS);
  EXPECT_EQ(entry<PFN_cuStreamSynchronize>("cuStreamSynchronize_ptsz")(nullptr), CUDA_SUCCESS);
  EXPECT_EQ(words[1], 5u);
  EXPECT_EQ(entry<PFN_cuMemsetD32_v2>("cuMemsetD32_v2_ptds")(second_word, 6, 1), CUDA_SUCCESS);
  EXPECT_EQ(words[1], 6u);
  ASSERT_EQ(fill(second_word, 7, nullptr), CUDA_SUCCESS);
  EXPECT_EQ(query(nullptr), CUDA_ERROR_NOT_READY);
  std::atomic_ref(words[0]).store(1);
  EXPECT_EQ(synchronize(nullptr), CUDA_SUCCESS);
  EXPECT_EQ(words[1], 7u);
}

TEST_F(Api, ArraysKeepRowsAndLayersThatAreCopiedThere) {
  const CUDA_ARRAY3D_DESCRIPTOR shape{4, 3, 2, CU_AD_FORMAT_UNSIGNED_INT32, 1, 0};
  CUarray array = nullptr;
  ASSERT_EQ(entry<PFN_cuArray3DCreate_v2>("cuArray3DCreate_v2")(&array, &shape), CUDA_SUCCESS);
  std::array<std::uint32_t, 24> there{};
  std::array<std::uint32_t, 24> back{};
  for (std::uint32_t i = 0; i < there.size(); ++i) there[i] = i + 1;
  CUDA_MEMCPY3D in{};
  in.srcMemoryType = CU_MEMORYTYPE_HOST;
  in.srcHost = there.data();
  in.srcPitch = 16;
  in.srcHeight = 3;
  in.dstMemoryType = CU_MEMORYTYPE_ARRAY;
  in.dstArray = array;
  in.WidthInBytes = 16;
  in.Height = 3;
  in.Depth = 2;
  const auto copy = entry<PFN_cuMemcpy3D_v2>("cuMemcpy3D_v2");
  EXPECT_EQ(copy(&in), CUDA_SUCCESS);
  // One word of the second layer's last row.
  CUDA_MEMCPY3D out{};
  out.srcMemoryType = CU_MEMORYTYPE_ARRAY;
  out.srcArray = array;
  out.srcXInBytes = 8;
  out.srcY = 2;
  out.srcZ = 1;
  out.dstMemoryType = CU_MEMORYTYPE_HOST;
  out.dstHost = back.data();
  out.WidthInBytes = 4;
  out.Height = 1;
  out.Depth = 1;
  EXPECT_EQ(copy(&out), CUDA_SUCCESS);
  EXPECT_EQ(back[0], there[12 + 8 + 2]);
  out.srcZ = 2;
  EXPECT_EQ(copy(&out), CUDA_ERROR_INVALID_VALUE);
  EXPECT_EQ(entry<PFN_cuArrayDestroy>("cuArrayDestroy")(array), CUDA_SUCCESS);
  out.srcZ = 1;
  EXPECT_EQ(copy(&out), CUDA_ERROR_INVALID_HANDLE);
}

TEST_F(Api, ArraysAreCopiedToAndFromMemoryAndEachOther) {
  const CUDA_ARRAY3D_DESCRIPTOR shape{16, 0, 0, CU_AD_FORMAT_UNSIGNED_INT32, 1, 0};
  CUmipmappedArray all = nullptr;
  CUarray half = nullptr;
  CUarray array = nullptr;
  CUDA_ARRAY_DESCRIPTOR seen{};
  ASSERT_EQ(entry<PFN_cuArray3DCreate_v2>("cuArray3DCreate_v2")(&array, &shape), CUDA_SUCCESS);
  ASSERT_EQ(entry<PFN_cuMipmappedArrayCreate>("cuMipmappedArrayCreate")(&all, &shape, 2), CUDA_SUCCESS);
  ASSERT_EQ(entry<PFN_cuMipmappedArrayGetLevel>("cuMipmappedArrayGetLevel")(&half, all, 1), CUDA_SUCCESS);
  ASSERT_EQ(entry<PFN_cuArrayGetDescriptor_v2>("cuArrayGetDescriptor_v2")(&seen, half), CUDA_SUCCESS);
  EXPECT_EQ(seen.Width, 8u);
  const std::uint32_t values[2] = {21, 22};
  std::uint32_t* words = pinned_words();
  EXPECT_EQ(entry<PFN_cuMemcpyHtoA_v2>("cuMemcpyHtoA_v2")(array, 8, values, 8), CUDA_SUCCESS);
  EXPECT_EQ(entry<PFN_cuMemcpyAtoA_v2>("cuMemcpyAtoA_v2")(half, 24, array, 8, 8), CUDA_SUCCESS);
  EXPECT_EQ(entry<PFN_cuMemcpyAtoD_v2>("cuMemcpyAtoD_v2")(reinterpret_cast<CUdeviceptr>(words), half, 28, 4),
            CUDA_SUCCESS);
  EXPECT_EQ(words[0], 22u);
  EXPECT_EQ(entry<PFN_cuMemcpyDtoA_v2>("cuMemcpyDtoA_v2")(array, 60, reinterpret_cast<CUdeviceptr>(words), 4),
            CUDA_SUCCESS);
  EXPECT_EQ(entry<PFN_cuMemcpyAtoH_v2>("cuMemcpyAtoH_v2")(words + 1, array, 60, 4), CUDA_SUCCESS);
  EXPECT_EQ(words[1], 22u);
  EXPECT_EQ(entry<PFN_cuMemcpyHtoA_v2>("cuMemcpyHtoA_v2")(array, 60, values, 8), CUDA_ERROR_INVALID_VALUE);
  EXPECT_EQ(entry<PFN_cuArrayDestroy>("cuArrayDestroy")(half), CUDA_ERROR_INVALID_HANDLE);
  EXPECT_EQ(entry<PFN_cuMipmappedArrayDestroy>("cuMipmappedArrayDestroy")(all), CUDA_SUCCESS);
  EXPECT_EQ(entry<PFN_cuMemcpyAtoH_v2>("cuMemcpyAtoH_v2")(words, half, 0, 4), CUDA_ERROR_INVALID_HANDLE);
}

TEST_F(Api, WrongHandlesAndPointersAreRefused) {
  EXPECT_EQ(synchronize(reinterpret_cast<CUstream>(0x1234)), CUDA_ERROR_INVALID_HANDLE);
  EXPECT_EQ(entry<PFN_cuMemFree_v2>("cuMemFree_v2")(0x1234), CUDA_ERROR_INVALID_VALUE);
  EXPECT_EQ(entry<PFN_cuMemsetD32_v2>("cuMemsetD32_v2")(0x2ffff0000000, 1, 1), CUDA_ERROR_INVALID_VALUE);
  EXPECT_EQ(entry<PFN_cuModuleUnload>("cuModuleUnload")(nullptr), CUDA_ERROR_INVALID_HANDLE);
  EXPECT_EQ(entry<PFN_cuMemRelease>("cuMemRelease")(7), CUDA_ERROR_INVALID_VALUE);
}

/// How much of files this process has read, /proc included.
std::uint64_t bytes_read() {
  std::ifstream file("/proc/self/io");
  std::string word;
  for (std::uint64_t value = 0; file >> word >> value;) {
    if (word == "rchar:") return value;
  }
  return 0;
}

template <class Action>
std::uint64_t bytes_read_by(const Action& action) {
  const std::uint64_t before = bytes_read();
  action();
  return bytes_read() - before;
}

class ManyMappings : public Api {
 protected:
  static constexpr std::size_t size_bytes = std::size_t{2} << 20;

  /// New memory at an address of its own.
  void map_one() {
    const CUmemAllocationProp properties{.type = CU_MEM_ALLOCATION_TYPE_PINNED,
                                         .requestedHandleTypes = CU_MEM_HANDLE_TYPE_NONE,
                                         .location = {CU_MEM_LOCATION_TYPE_DEVICE, 0},
                                         .win32HandleMetaData = nullptr,
                                         .allocFlags = {}};
    const CUmemAccessDesc access{{CU_MEM_LOCATION_TYPE_DEVICE, 0}, CU_MEM_ACCESS_FLAGS_PROT_READWRITE};
    CUmemGenericAllocationHandle handle = 0;
    CUdeviceptr address = 0;
    ASSERT_EQ(entry<PFN_cuMemCreate>("cuMemCreate")(&handle, size_bytes, &properties, 0), CUDA_SUCCESS);
    ASSERT_EQ(entry<PFN_cuMemAddressReserve>("cuMemAddressReserve")(&address, size_bytes, 0, 0, 0),
              CUDA_SUCCESS);
    ASSERT_EQ(entry<PFN_cuMemMap>("cuMemMap")(address, size_bytes, 0, handle, 0), CUDA_SUCCESS);
    ASSERT_EQ(entry<PFN_cuMemSetAccess>("cuMemSetAccess")(address, size_bytes, &access, 1), CUDA_SUCCESS);
  }
};

// As an H200 answers (driver 580.159.04).
TEST_F(ManyMappings, AttributesAreOfTheReservationAndTheRangeIsOfTheMapping) {
  const CUmemAllocationProp properties{.type = CU_MEM_ALLOCATION_TYPE_PINNED,
                                       .requestedHandleTypes = CU_MEM_HANDLE_TYPE_NONE,
                                       .location = {CU_MEM_LOCATION_TYPE_DEVICE, 0},
                                       .win32HandleMetaData = nullptr,
                                       .allocFlags = {}};
  const CUmemAccessDesc access{{CU_MEM_LOCATION_TYPE_DEVICE, 0}, CU_MEM_ACCESS_FLAGS_PROT_READ};
  CUmemGenericAllocationHandle handle = 0;
  CUdeviceptr reserved = 0;
  ASSERT_EQ(entry<PFN_cuMemCreate>("cuMemCreate")(&handle, size_bytes, &properties, 0), CUDA_SUCCESS);
  ASSERT_EQ(entry<PFN_cuMemAddressReserve>("cuMemAddressReserve")(&reserved, 4 * size_bytes, 0, 0, 0),
            CUDA_SUCCESS);
  const CUdeviceptr mapped = reserved + size_bytes;
  ASSERT_EQ(entry<PFN_cuMemMap>("cuMemMap")(mapped, size_bytes, 0, handle, 0), CUDA_SUCCESS);
  CUdeviceptr begin = 0;
  std::size_t bytes = 0;
  std::uint64_t types = 77;
  const auto range = entry<PFN_cuMemGetAddressRange_v2>("cuMemGetAddressRange_v2");
  const auto attribute = entry<PFN_cuPointerGetAttribute>("cuPointerGetAttribute");
  EXPECT_EQ(range(&begin, &bytes, mapped + 5), CUDA_ERROR_NOT_FOUND) << "nobody has rights yet";
  ASSERT_EQ(entry<PFN_cuMemSetAccess>("cuMemSetAccess")(mapped, size_bytes, &access, 1), CUDA_SUCCESS);
  EXPECT_EQ(range(&begin, &bytes, mapped + 5), CUDA_SUCCESS);
  EXPECT_EQ(begin, mapped);
  EXPECT_EQ(bytes, size_bytes);
  EXPECT_EQ(attribute(&begin, CU_POINTER_ATTRIBUTE_RANGE_START_ADDR, mapped + 5), CUDA_SUCCESS);
  EXPECT_EQ(begin, reserved);
  EXPECT_EQ(attribute(&bytes, CU_POINTER_ATTRIBUTE_RANGE_SIZE, mapped + 5), CUDA_SUCCESS);
  EXPECT_EQ(bytes, 4 * size_bytes);
  EXPECT_EQ(attribute(&types, CU_POINTER_ATTRIBUTE_ALLOWED_HANDLE_TYPES, mapped + 5), CUDA_SUCCESS);
  EXPECT_EQ(types, 0U);
}

TEST_F(ManyMappings, OneMoreReadsNoMoreOfTheMemoryMapThanTheFirst) {
  const auto nothing = bytes_read_by([] {});
  if (bytes_read_by([] { (void)os::memory_map_within(os::own_pid(), 0, 1); }) > nothing + 64)
    GTEST_SKIP() << "Linux answers for a part of the map from 6.11 on";
  const auto few = bytes_read_by([this] { map_one(); });
  for (int i = 0; i < 200; ++i) map_one();
  const auto many = bytes_read_by([this] { map_one(); });
  EXPECT_LE(many, few + 64) << "bytes read, beside 200 others";
}

}  // namespace
}  // namespace firebreak::test
