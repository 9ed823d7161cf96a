// SPDX-License-Identifier: Apache-2.0
#include "agent/faults/watch/nvml_detector.h"

#include <gmock/gmock.h>

#include <condition_variable>
#include <deque>
#include <mutex>

#include "tests/doubles/watch/detector_test_support.h"

namespace firebreak::watch {
namespace {

using testing::HasSubstr;

/// The answers of the functions below: NVML's have no argument to carry them.
struct FakeNvml {
  std::mutex mutex;  ///< guards everything below
  std::condition_variable changed;
  std::deque<abi::nvmlEventData_t> events;
  abi::nvmlReturn_t wait_answer = abi::NVML_ERROR_TIMEOUT;
  unsigned int gpus = 2;
  unsigned long long supported = ~0ull;
  unsigned long long registered = 0;
  int open_sets = 0;
  int started = 0;

  void post(unsigned gpu, unsigned long long type, unsigned long long data) {
    const std::lock_guard lock(mutex);
    events.push_back({reinterpret_cast<abi::nvmlDevice_t>(std::uintptr_t{gpu} + 1), type, data, 0, 0});
    changed.notify_all();
  }
};

FakeNvml*& fake() {
  static FakeNvml* current = nullptr;
  return current;
}

abi::nvmlReturn_t wait(abi::nvmlEventSet_t, abi::nvmlEventData_t* data, unsigned int timeout_ms) {
  FakeNvml& nvml = *fake();
  std::unique_lock lock(nvml.mutex);
  const auto ready = [&] { return !nvml.events.empty() || nvml.wait_answer != abi::NVML_ERROR_TIMEOUT; };
  nvml.changed.wait_for(lock, Milliseconds(timeout_ms), ready);
  if (nvml.events.empty()) return nvml.wait_answer;
  *data = nvml.events.front();
  nvml.events.pop_front();
  return abi::NVML_SUCCESS;
}

abi::NvmlFunctions functions() {
  abi::NvmlFunctions table{};
  table.nvmlInit_v2 = [] { return ++fake()->started, abi::NVML_SUCCESS; };
  table.nvmlShutdown = [] { return --fake()->started, abi::NVML_SUCCESS; };
  table.nvmlDeviceGetCount_v2 = [](unsigned int* count) { return *count = fake()->gpus, abi::NVML_SUCCESS; };
  table.nvmlDeviceGetHandleByIndex_v2 = [](unsigned int index, abi::nvmlDevice_t* device) {
    *device = reinterpret_cast<abi::nvmlDevice_t>(std::uintptr_t{index} + 1);
    return abi::NVML_SUCCESS;
  };
  table.nvmlDeviceGetIndex = [](abi::nvmlDevice_t device, unsigned int* index) {
    *index = static_cast<unsigned int>(reinterpret_cast<std::uintptr_t>(device) - 1);
    return abi::NVML_SUCCESS;
  };
  table.nvmlEventSetCreate = [](abi::nvmlEventSet_t* set) {
    *set = reinterpret_cast<abi::nvmlEventSet_t>(fake());
    return ++fake()->open_sets, abi::NVML_SUCCESS;
  };
  table.nvmlEventSetFree = [](abi::nvmlEventSet_t) { return --fake()->open_sets, abi::NVML_SUCCESS; };
  table.nvmlDeviceGetSupportedEventTypes = [](abi::nvmlDevice_t, unsigned long long* types) {
    return *types = fake()->supported, abi::NVML_SUCCESS;
  };
  table.nvmlDeviceRegisterEvents = [](abi::nvmlDevice_t, unsigned long long types, abi::nvmlEventSet_t) {
    return fake()->registered = types, abi::NVML_SUCCESS;
  };
  table.nvmlEventSetWait_v2 = wait;
  table.nvmlDeviceGetPciInfo_v3 = [](abi::nvmlDevice_t device, abi::nvmlPciInfo_t* pci) {
    pci->bus = static_cast<unsigned int>(0x3b + reinterpret_cast<std::uintptr_t>(device));
    return abi::NVML_SUCCESS;
  };
  return table;
}

class NvmlDetectorTest : public DetectorTest {
 protected:
  NvmlDetectorTest() { fake() = &nvml_; }
  ~NvmlDetectorTest() override { fake() = nullptr; }

  std::unique_ptr<NvmlDetector> detector() {
    return std::make_unique<NvmlDetector>(
        *loop_, system_clock_, [] { return NvmlLibrary::of(functions()); }, note_fault(), note_end());
  }

  SystemClock system_clock_;
  FakeNvml nvml_;
};

TEST_F(NvmlDetectorTest, AnXidEventIsAFaultOfItsGpu) {
  const auto watcher = detector();
  ASSERT_TRUE(watcher->start());
  nvml_.post(1, abi::nvmlEventTypeXidCriticalError, 43);
  ASSERT_TRUE(run_until([&] { return faults_.size() == 1; }));
  EXPECT_EQ(faults_[0].xid, 43);
  EXPECT_EQ(faults_[0].gpu.number, 1u);
  EXPECT_EQ(faults_[0].gpu.pci, "0000:3d:00");
  EXPECT_EQ(faults_[0].fault_class, fault::FaultClass::Sm);
  EXPECT_EQ(faults_[0].source, fault::FaultSource::Nvml);
  EXPECT_FALSE(faults_[0].pid);
}

TEST_F(NvmlDetectorTest, EccErrorsAreOfTheDevice) {
  const auto watcher = detector();
  ASSERT_TRUE(watcher->start());
  nvml_.post(0, abi::nvmlEventTypeDoubleBitEccError, 0);
  nvml_.post(0, abi::nvmlEventTypeSingleBitEccError, 0);
  ASSERT_TRUE(run_until([&] { return faults_.size() == 2; }));
  EXPECT_EQ(faults_[0].fault_class, fault::FaultClass::Device);
  EXPECT_TRUE(faults_[0].conclusive);
  EXPECT_FALSE(faults_[1].conclusive);
}

TEST_F(NvmlDetectorTest, AsksForNoMoreThanTheGpuSupports) {
  nvml_.supported = abi::nvmlEventTypeXidCriticalError | 0x100;
  const auto watcher = detector();
  ASSERT_TRUE(watcher->start());
  EXPECT_EQ(nvml_.registered, abi::nvmlEventTypeXidCriticalError);
}

TEST_F(NvmlDetectorTest, LeavesNothingBehind) {
  EXPECT_TRUE(detector()->start());
  EXPECT_EQ(nvml_.open_sets, 0);
  EXPECT_EQ(nvml_.started, 0);
}

TEST_F(NvmlDetectorTest, WhatComesAfterItsEndIsNotToldToAnybody) {
  auto watcher = detector();
  ASSERT_TRUE(watcher->start());
  nvml_.post(0, abi::nvmlEventTypeXidCriticalError, 31);
  watcher.reset();
  settle();
  EXPECT_TRUE(faults_.empty());
}

TEST_F(NvmlDetectorTest, EndsWhenNvmlFails) {
  const auto watcher = detector();
  ASSERT_TRUE(watcher->start());
  {
    const std::lock_guard lock(nvml_.mutex);
    nvml_.wait_answer = abi::NVML_ERROR_GPU_IS_LOST;
    nvml_.changed.notify_all();
  }
  ASSERT_TRUE(run_until([&] { return ends_.size() == 1; }));
  EXPECT_THAT(ends_[0].message, HasSubstr("15"));
}

TEST_F(NvmlDetectorTest, GpusWithoutEventsAreSaidInOneLine) {
  nvml_.supported = 0;
  const Status started = detector()->start();
  ASSERT_FALSE(started);
  EXPECT_EQ(started.error().code, ErrorCode::Unsupported);
}

TEST(NvmlLibrary, AMissingLibraryIsOneLine) {
  const auto library = NvmlLibrary::open("libnvidia-ml-that-is-not-there.so.1");
  ASSERT_FALSE(library);
  EXPECT_EQ(library.error().code, ErrorCode::NotFound);
  EXPECT_THAT(library.error().message, HasSubstr("no NVML events"));
}

}  // namespace
}  // namespace firebreak::watch
