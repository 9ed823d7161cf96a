// SPDX-License-Identifier: Apache-2.0
#include "agent/faults/watch/remains.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <atomic>
#include <vector>

#include "ground/base/units.h"

namespace firebreak::watch {
namespace {

constexpr pid_t dead = 42;

/// The answers of the functions below: NVML's have no argument to carry them.
struct FakeNvml {
  std::vector<std::vector<abi::nvmlProcessInfo_t>> gpus;
  abi::nvmlReturn_t answer = abi::NVML_SUCCESS;
};
FakeNvml& fake() {
  static FakeNvml only;
  return only;
}

abi::NvmlFunctions functions() {
  abi::NvmlFunctions table{};
  table.nvmlInit_v2 = [] { return abi::NVML_SUCCESS; };
  table.nvmlShutdown = [] { return abi::NVML_SUCCESS; };
  table.nvmlDeviceGetCount_v2 = [](unsigned int* count) {
    *count = static_cast<unsigned int>(fake().gpus.size());
    return abi::NVML_SUCCESS;
  };
  table.nvmlDeviceGetHandleByIndex_v2 = [](unsigned int index, abi::nvmlDevice_t* device) {
    *device = reinterpret_cast<abi::nvmlDevice_t>(std::uintptr_t{index} + 1);
    return abi::NVML_SUCCESS;
  };
  table.nvmlDeviceGetComputeRunningProcesses_v3 = [](abi::nvmlDevice_t device, unsigned int* count,
                                                     abi::nvmlProcessInfo_t* into) {
    const auto& all = fake().gpus.at(reinterpret_cast<std::uintptr_t>(device) - 1);
    std::copy(all.begin(), all.end(), into);
    *count = static_cast<unsigned int>(all.size());
    return fake().answer;
  };
  return table;
}

abi::nvmlProcessInfo_t process(unsigned int pid, std::uint64_t bytes) { return {pid, bytes, 0, 0}; }

std::string remains(const abi::NvmlFunctions& table) {
  const auto nvml = NvmlLibrary::of(table);
  return describe_remains(gpu_use_of(**nvml, dead), Milliseconds(2000));
}

TEST(GpuUseOf, IsWhatNvmlListsOnAllGpus) {
  fake() = {{{process(7, 3 * mib), process(dead, 5 * mib)}, {process(dead, 6 * mib)}}};
  EXPECT_EQ(remains(functions()), "NVML lists it still, 2000 ms later: 11 MiB");
  fake() = {{{process(dead, abi::NVML_VALUE_NOT_AVAILABLE)}}};
  EXPECT_EQ(remains(functions()), "NVML lists it still, 2000 ms later: 0 MiB");
  fake() = {{{process(7, 3 * mib)}}};
  EXPECT_EQ(remains(functions()), "NVML lists it no more: nothing was left");
}

TEST(GpuUseOf, IsNotKnownWhereNvmlDoesNotSay) {
  fake() = {{{}}, abi::NVML_ERROR_NO_PERMISSION};
  EXPECT_EQ(remains(functions()), "what was left cannot be checked: NVML lists no processes (4)");
  fake() = {};
  EXPECT_EQ(remains(functions()), "what was left cannot be checked: NVML sees no GPU");
  abi::NvmlFunctions old = functions();
  old.nvmlDeviceGetComputeRunningProcesses_v3 = nullptr;
  EXPECT_EQ(remains(old), "what was left cannot be checked: this NVML lists no processes");
}

class RemainsTest : public testing::Test {
 protected:
  /// Looks as if it was listed so many times.
  std::string look(int times, Milliseconds longest) {
    std::atomic<int> looks{0};
    const auto find = [&](pid_t pid) -> Result<std::optional<GpuUse>> {
      EXPECT_EQ(pid, dead);
      return ++looks <= times ? std::optional(GpuUse{mib}) : std::nullopt;
    };
    Remains remains(*loop_, find, {Milliseconds(1), longest});
    std::string told;
    remains.look_for(dead, [&](const std::string& text) { told = text; });
    while (told.empty()) loop_->run_once(std::nullopt);
    looks_ = looks.load();
    return told;
  }
  std::unique_ptr<os::EventLoop> loop_ = os::EventLoop::create().value();
  int looks_ = 0;
};

TEST_F(RemainsTest, AreLookedForUntilTheyAreGone) {
  EXPECT_EQ(look(3, Milliseconds(1000)), "NVML lists it no more: nothing was left");
  EXPECT_EQ(looks_, 4);
}

TEST_F(RemainsTest, AreToldOfAtTheLongest) {
  EXPECT_EQ(look(1000, Milliseconds(5)), "NVML lists it still, 5 ms later: 1 MiB");
  EXPECT_EQ(looks_, 6);
}

TEST_F(RemainsTest, WithoutNvmlCannotBeChecked) {
  Remains remains(*loop_, find_by_nvml("libof-nobody.so"));
  std::string told;
  remains.look_for(dead, [&](const std::string& text) { told = text; });
  while (told.empty()) loop_->run_once(std::nullopt);
  EXPECT_THAT(told, testing::StartsWith("what was left cannot be checked: "));
}

TEST_F(RemainsTest, NobodyIsToldWhoIsGone) {
  bool told = false;
  {
    Remains remains(*loop_, [](pid_t) -> Result<std::optional<GpuUse>> { return GpuUse{}; });
    remains.look_for(dead, [&](const std::string&) { told = true; });
  }
  while (loop_->run_once(Milliseconds(0))) {
  }
  EXPECT_FALSE(told);
}

}  // namespace
}  // namespace firebreak::watch
