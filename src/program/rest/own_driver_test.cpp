// SPDX-License-Identifier: Apache-2.0
#include "program/rest/own_driver.h"

#include <gtest/gtest.h>

#include "ground/os/memory.h"

namespace firebreak::rest {
namespace {

TEST(OwnDriver, WhatIsOfTheGpuIsKnownByItsName) {
  EXPECT_TRUE(is_of_gpu("/dev/nvidia0"));
  EXPECT_TRUE(is_of_gpu("/dev/nvidiactl"));
  EXPECT_TRUE(is_of_gpu("/dev/nvidia-uvm"));
  EXPECT_TRUE(is_of_gpu("/dev/shm/cuda.shm.0.1.1"));
  EXPECT_TRUE(is_of_gpu("/memfd:nvidia-uvm (deleted)"));
  EXPECT_FALSE(is_of_gpu("/usr/lib/libnvidia-ml.so.1"));
  EXPECT_FALSE(is_of_gpu("/dev/shm/mine"));
  EXPECT_FALSE(is_of_gpu("/memfd:firebreak-softgpu-memory (deleted)"));
}

TEST(OwnDriver, SocketsOfTheProgramsAreNotItsDrivers) {
  EXPECT_TRUE(is_of_mps("", "/mps/anchor/control", "/mps/anchor"));
  EXPECT_TRUE(is_of_mps("/mps/anchor/7", "", "/mps/anchor"));
  EXPECT_TRUE(is_of_mps("@cuda-uvmfd-4026531836-7", "", "/mps/anchor"));
  EXPECT_FALSE(is_of_mps("", "/mps/anchors/control", "/mps/anchor"));
  EXPECT_FALSE(is_of_mps("", "/run/server", "/mps/anchor"));
  EXPECT_FALSE(is_of_mps("", "", "/mps/anchor"));
  EXPECT_FALSE(is_of_mps("", "/control", ""));
}

TEST(OwnDriver, BesideNvmlOnlyWhatItsOwnCallsOpenedIsReplaced) {
  const auto nvml = os::create_memory_file("lib/libnvidia-ml.so.1", os::page_size());
  const auto loaded = os::Mapping::of_file(nvml->get(), os::page_size(), os::Protection::Read);
  ASSERT_TRUE(loaded);
  const auto before = os::create_memory_file("nvidiactl", os::page_size());
  OwnDescriptors own;
  const auto opened = own.during([] { return os::create_memory_file("nvidiactl", os::page_size()); });
  const auto after = os::create_memory_file("nvidia-uvm", os::page_size());
  EXPECT_EQ(own.all(), std::set<int>{opened->get()});
  const auto socket = os::make_quiet_socket();
  EXPECT_EQ(replace_own_driver(*socket, own, {}, "").descriptors, 1U);
  EXPECT_TRUE(os::has_fixed_size(before->get()));
  EXPECT_FALSE(os::has_fixed_size(opened->get()));
  EXPECT_TRUE(os::has_fixed_size(after->get()));
}

TEST(OwnDriver, WhatIsKeptStays) {
  const auto replaced = os::create_memory_file("nvidiactl", os::page_size());
  const auto kept = os::create_memory_file("nvidiactl", os::page_size());
  const auto other = os::create_memory_file("other", os::page_size());
  const auto mapped = os::Mapping::of_file(replaced->get(), os::page_size(), os::Protection::ReadWrite);
  *mapped->as<char>() = 7;
  const auto socket = os::make_quiet_socket();
  const Replaced all = replace_own_driver(*socket, {}, {kept->get()}, "");
  EXPECT_EQ(all.descriptors, 1U);
  EXPECT_EQ(all.mappings, 1U);
  EXPECT_FALSE(os::has_fixed_size(replaced->get()));
  EXPECT_TRUE(os::has_fixed_size(kept->get()));
  EXPECT_TRUE(os::has_fixed_size(other->get()));
  EXPECT_EQ(*mapped->as<char>(), 0);
}

}  // namespace
}  // namespace firebreak::rest
