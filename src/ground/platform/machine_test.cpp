// SPDX-License-Identifier: Apache-2.0
#include "ground/platform/machine.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "tests/doubles/os/fake_kernel.h"

namespace firebreak::platform {
namespace {

struct MachineTest : testing::Test {
  Platform platform;
  os::FakeKernel* kernel = nullptr;

  MachineTest() {
    auto fake = std::make_unique<os::FakeKernel>();
    kernel = fake.get();
    platform.kernel = std::move(fake);
  }
};

TEST_F(MachineTest, ReadsTheRealGpusNameAndDriver) {
  platform.gpu = Gpu::Real;
  kernel->set_file("/proc/driver/nvidia/gpus/0000:00:05.0/information",
                   "Model: \t\t NVIDIA H100 80GB HBM3\nIRQ: 11\n");
  kernel->set_file("/proc/driver/nvidia/version",
                   "NVRM version: NVIDIA UNIX Open Kernel Module for x86_64  580.159.04  Release Build\nGCC "
                   "version: gcc 12.2.0\n");
  kernel->set_file("/proc/sys/kernel/osrelease", "6.18.0\n");
  const Machine machine = describe_machine(platform);
  EXPECT_EQ(machine.gpu, "NVIDIA H100 80GB HBM3");
  EXPECT_EQ(machine.driver, "580.159.04");
  EXPECT_EQ(machine.linux_release, "6.18.0");
}

TEST_F(MachineTest, WhatIsNotThereStaysEmpty) {
  platform.gpu = Gpu::Real;
  const Machine machine = describe_machine(platform);
  EXPECT_EQ(machine.gpu, "");
  EXPECT_EQ(machine.driver, "");
}

TEST_F(MachineTest, TheVersionNamesTheCommit) {
  EXPECT_THAT(version(), testing::StartsWith("0."));
  const std::string commit = describe_machine(platform).commit;
  EXPECT_THAT(version(), testing::EndsWith(commit.empty() ? "" : " (" + commit + ")"));
}

TEST_F(MachineTest, TheSoftwareGpuSaysThatItIsOne) {
  platform.gpu = Gpu::Soft;
  EXPECT_EQ(describe_machine(platform).gpu, "Firebreak Software GPU");
  EXPECT_EQ(describe_machine(platform).driver, "");
}

}  // namespace
}  // namespace firebreak::platform
