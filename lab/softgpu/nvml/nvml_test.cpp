// SPDX-License-Identifier: Apache-2.0
/// The library as a program loads it; faults are posted by this process, as another one would.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <array>
#include <cstdlib>
#include <thread>

#include "ground/os/file.h"
#include "ground/os/self.h"
#include "ground/platform/nvml.h"
#include "softgpu/environment.h"
#include "softgpu/machine/device_uuid.h"
#include "softgpu/machine/shared_gpu.h"

namespace firebreak::softgpu {
namespace {

using abi::NVML_ERROR_INVALID_ARGUMENT;
using abi::NVML_ERROR_NOT_SUPPORTED;
using abi::NVML_ERROR_TIMEOUT;
using abi::NVML_ERROR_UNINITIALIZED;
using abi::NVML_SUCCESS;
using abi::nvmlEventTypeDoubleBitEccError;
using abi::nvmlEventTypeXidCriticalError;

template <class Function>
void load(const char* name, Function& function) {
  function = reinterpret_cast<Function>(os::load_symbol(FIREBREAK_SOFTGPU_NVML, name).value());
}

abi::NvmlFunctions load_all() {
  abi::NvmlFunctions nvml{};
  load("nvmlInit_v2", nvml.nvmlInit_v2);
  load("nvmlShutdown", nvml.nvmlShutdown);
  load("nvmlDeviceGetCount_v2", nvml.nvmlDeviceGetCount_v2);
  load("nvmlDeviceGetHandleByIndex_v2", nvml.nvmlDeviceGetHandleByIndex_v2);
  load("nvmlDeviceGetIndex", nvml.nvmlDeviceGetIndex);
  load("nvmlDeviceGetMemoryInfo", nvml.nvmlDeviceGetMemoryInfo);
  load("nvmlEventSetCreate", nvml.nvmlEventSetCreate);
  load("nvmlDeviceGetSupportedEventTypes", nvml.nvmlDeviceGetSupportedEventTypes);
  load("nvmlDeviceRegisterEvents", nvml.nvmlDeviceRegisterEvents);
  load("nvmlEventSetWait_v2", nvml.nvmlEventSetWait_v2);
  load("nvmlEventSetFree", nvml.nvmlEventSetFree);
  load("nvmlDeviceGetPciInfo_v3", nvml.nvmlDeviceGetPciInfo_v3);
  load("nvmlDeviceGetUUID", nvml.nvmlDeviceGetUUID);
  load("nvmlDeviceGetComputeRunningProcesses_v3", nvml.nvmlDeviceGetComputeRunningProcesses_v3);
  return nvml;
}

struct Nvml : testing::Test {
  os::TemporaryDirectory directory = std::move(os::TemporaryDirectory::create().value());
  os::EnvironmentScope scope{
      os::EnvironmentScope::Variables{{environment::directory, directory.path() + "/gpu"}}};
  std::shared_ptr<SharedGpu> gpu = SharedGpu::open().value();
  abi::NvmlFunctions nvml = load_all();
  abi::nvmlDevice_t device = nullptr;

  void SetUp() override {
    ASSERT_EQ(nvml.nvmlInit_v2(), NVML_SUCCESS);
    ASSERT_EQ(nvml.nvmlDeviceGetHandleByIndex_v2(0, &device), NVML_SUCCESS);
  }
  void TearDown() override {
    while (nvml.nvmlShutdown() == NVML_SUCCESS) {
    }
  }
  abi::nvmlEventSet_t listener(unsigned long long types = nvmlEventTypeXidCriticalError) const {
    abi::nvmlEventSet_t set = nullptr;
    EXPECT_EQ(nvml.nvmlEventSetCreate(&set), NVML_SUCCESS);
    EXPECT_EQ(nvml.nvmlDeviceRegisterEvents(device, types, set), NVML_SUCCESS);
    return set;
  }
  void post_xid(int xid, std::int64_t due_ns = now_ns()) {
    gpu->post_nvml({due_ns, nvmlEventTypeXidCriticalError, static_cast<std::uint64_t>(xid)});
  }
  /// The Xid of the next event, negative where none comes.
  int next_xid(abi::nvmlEventSet_t set, unsigned int timeout_ms = 0) const {
    abi::nvmlEventData_t data{};
    const abi::nvmlReturn_t status = nvml.nvmlEventSetWait_v2(set, &data, timeout_ms);
    if (status != NVML_SUCCESS) return -static_cast<int>(status);
    EXPECT_EQ(data.device, device);
    EXPECT_EQ(data.eventType, nvmlEventTypeXidCriticalError);
    return static_cast<int>(data.eventData);
  }
};

/// Nobody waits for that long: something comes before.
constexpr unsigned int forever_ms = 200'000;
constexpr int timed_out = -static_cast<int>(NVML_ERROR_TIMEOUT);

TEST_F(Nvml, TellsOfAnXidOnce) {
  const auto set = listener();
  post_xid(31);
  EXPECT_EQ(next_xid(set), 31);
  EXPECT_EQ(next_xid(set), timed_out);
}

TEST_F(Nvml, HoldsAnEventBackUntilItsTime) {
  const auto set = listener();
  const std::int64_t due_ns = now_ns() + 30'000'000;
  post_xid(43, due_ns);
  EXPECT_EQ(next_xid(set, forever_ms), 43);
  EXPECT_GE(now_ns(), due_ns);
}

TEST_F(Nvml, TellsInTheOrderOfTheTimes) {
  const auto set = listener();
  const std::int64_t now = now_ns();
  post_xid(43, now - 1);
  post_xid(31, now - 2);
  EXPECT_EQ(next_xid(set), 31);
  EXPECT_EQ(next_xid(set), 43);
}

TEST_F(Nvml, WakesWhoWaits) {
  const auto set = listener();
  std::thread faulter([this] { post_xid(79); });
  EXPECT_EQ(next_xid(set, forever_ms), 79);
  faulter.join();
}

TEST_F(Nvml, TellsEveryListenerOfEveryEvent) {
  const auto one = listener();
  const auto other = listener();
  post_xid(31);
  post_xid(43);
  for (const auto set : {one, other}) {
    EXPECT_EQ(next_xid(set), 31);
    EXPECT_EQ(next_xid(set), 43);
  }
}

TEST_F(Nvml, TellsOfNothingThatWasBeforeOrWasNotAskedFor) {
  post_xid(31);
  const auto set = listener();
  gpu->post_nvml({now_ns(), nvmlEventTypeDoubleBitEccError, 0});
  EXPECT_EQ(next_xid(set), timed_out);
}

TEST_F(Nvml, TellsOfDoubleBitErrors) {
  const auto set = listener(nvmlEventTypeDoubleBitEccError);
  gpu->post_nvml({now_ns(), nvmlEventTypeDoubleBitEccError, 0});
  abi::nvmlEventData_t data{};
  ASSERT_EQ(nvml.nvmlEventSetWait_v2(set, &data, 0), NVML_SUCCESS);
  EXPECT_EQ(data.eventType, nvmlEventTypeDoubleBitEccError);
}

TEST_F(Nvml, SupportsNoOtherEvents) {
  unsigned long long types = 0;
  ASSERT_EQ(nvml.nvmlDeviceGetSupportedEventTypes(device, &types), NVML_SUCCESS);
  EXPECT_EQ(types, nvmlEventTypeXidCriticalError | nvmlEventTypeDoubleBitEccError);
  EXPECT_EQ(nvml.nvmlDeviceRegisterEvents(device, 1, listener()), NVML_ERROR_NOT_SUPPORTED);
}

TEST_F(Nvml, IsOneGpu) {
  unsigned int count = 0;
  ASSERT_EQ(nvml.nvmlDeviceGetCount_v2(&count), NVML_SUCCESS);
  EXPECT_EQ(count, 1U);
  unsigned int index = 7;
  ASSERT_EQ(nvml.nvmlDeviceGetIndex(device, &index), NVML_SUCCESS);
  EXPECT_EQ(index, 0U);
  EXPECT_EQ(nvml.nvmlDeviceGetHandleByIndex_v2(1, &device), NVML_ERROR_INVALID_ARGUMENT);
}

/// Each has an address, as the kernel's log names it, and tells of itself.
struct TwoGpus : Nvml {
  os::EnvironmentScope two{os::EnvironmentScope::Variables{{environment::count, "2"}}};
  void SetUp() override {
    Nvml::SetUp();
    ASSERT_EQ(nvml.nvmlDeviceGetHandleByIndex_v2(1, &second), NVML_SUCCESS);
  }
  abi::nvmlDevice_t second = nullptr;
};

TEST_F(TwoGpus, AreTwoAddressesAndTwoUuids) {
  unsigned int count = 0;
  ASSERT_EQ(nvml.nvmlDeviceGetCount_v2(&count), NVML_SUCCESS);
  EXPECT_EQ(count, 2U);
  unsigned int index = 7;
  ASSERT_EQ(nvml.nvmlDeviceGetIndex(second, &index), NVML_SUCCESS);
  EXPECT_EQ(index, 1U);
  abi::nvmlPciInfo_t pci{};
  ASSERT_EQ(nvml.nvmlDeviceGetPciInfo_v3(second, &pci), NVML_SUCCESS);
  EXPECT_EQ(pci.device, 6U);
  std::array<char, abi::nvml_uuid_bytes> uuid{};
  ASSERT_EQ(nvml.nvmlDeviceGetUUID(second, uuid.data(), uuid.size()), NVML_SUCCESS);
  EXPECT_STREQ(uuid.data(), uuid_text(1).c_str());
  EXPECT_EQ(nvml.nvmlDeviceGetUUID(second, uuid.data(), 8), abi::NVML_ERROR_INSUFFICIENT_SIZE);
}

TEST_F(TwoGpus, TellOfThemselves) {
  const auto set = listener();
  ASSERT_EQ(nvml.nvmlDeviceRegisterEvents(second, nvmlEventTypeXidCriticalError, set), NVML_SUCCESS);
  const auto other = SharedGpu::open(directory.path() + "/gpu", 1).value();
  std::thread faulter([&] { other->post_nvml({now_ns(), nvmlEventTypeXidCriticalError, 79}); });
  abi::nvmlEventData_t data{};
  ASSERT_EQ(nvml.nvmlEventSetWait_v2(set, &data, forever_ms), NVML_SUCCESS);
  EXPECT_EQ(data.device, second);
  EXPECT_EQ(data.eventData, 79U);
  faulter.join();
}

TEST_F(Nvml, KnowsHowMuchMemoryIsTaken) {
  ASSERT_TRUE(gpu->enter().has_value());
  ASSERT_TRUE(gpu->take_memory(1 << 20));
  abi::nvmlMemory_t memory{};
  ASSERT_EQ(nvml.nvmlDeviceGetMemoryInfo(device, &memory), NVML_SUCCESS);
  EXPECT_EQ(memory.used, std::uint64_t{1} << 20);
  EXPECT_EQ(memory.total, gpu->total_bytes());
  EXPECT_EQ(memory.free, memory.total - memory.used);
  gpu->give_memory(1 << 20);
}

TEST_F(Nvml, ListsWhoIsThereAndWhoIsKept) {
  ASSERT_TRUE(gpu->enter().has_value());
  ASSERT_TRUE(gpu->take_memory(1 << 20));
  gpu->keep_listed(77);
  std::array<abi::nvmlProcessInfo_t, 4> processes{};
  unsigned int count = 1;
  const auto list = [&] {
    return nvml.nvmlDeviceGetComputeRunningProcesses_v3(device, &count, processes.data());
  };
  EXPECT_EQ(list(), abi::NVML_ERROR_INSUFFICIENT_SIZE);
  ASSERT_EQ(count, 2U);
  ASSERT_EQ(list(), NVML_SUCCESS);
  EXPECT_EQ(processes[0].pid, static_cast<unsigned int>(os::own_pid()));
  EXPECT_EQ(processes[0].usedGpuMemory, std::uint64_t{1} << 20);
  EXPECT_EQ(processes[1].pid, 77U);
  gpu->forget(77);
  count = 4;
  ASSERT_EQ(list(), NVML_SUCCESS);
  EXPECT_EQ(count, 1U);
  gpu->give_memory(1 << 20);
}

TEST_F(Nvml, RefusesHandlesThatAreNone) {
  const auto set = listener();
  ASSERT_EQ(nvml.nvmlEventSetFree(set), NVML_SUCCESS);
  abi::nvmlEventData_t data{};
  EXPECT_EQ(nvml.nvmlEventSetWait_v2(set, &data, 0), NVML_ERROR_INVALID_ARGUMENT);
  EXPECT_EQ(nvml.nvmlEventSetFree(set), NVML_ERROR_INVALID_ARGUMENT);
  unsigned int index = 0;
  EXPECT_EQ(nvml.nvmlDeviceGetIndex(nullptr, &index), NVML_ERROR_INVALID_ARGUMENT);
  EXPECT_EQ(nvml.nvmlEventSetCreate(nullptr), NVML_ERROR_INVALID_ARGUMENT);
}

TEST_F(Nvml, EndsWithAsManyShutdownsAsItWasInitialised) {
  ASSERT_EQ(nvml.nvmlInit_v2(), NVML_SUCCESS);
  ASSERT_EQ(nvml.nvmlShutdown(), NVML_SUCCESS);
  unsigned int count = 0;
  EXPECT_EQ(nvml.nvmlDeviceGetCount_v2(&count), NVML_SUCCESS);
  ASSERT_EQ(nvml.nvmlShutdown(), NVML_SUCCESS);
  EXPECT_EQ(nvml.nvmlDeviceGetCount_v2(&count), NVML_ERROR_UNINITIALIZED);
  EXPECT_EQ(nvml.nvmlShutdown(), NVML_ERROR_UNINITIALIZED);
}

}  // namespace
}  // namespace firebreak::softgpu
