// SPDX-License-Identifier: Apache-2.0
#include "agent/faults/watch/departure.h"

#include <gtest/gtest.h>

#include "ground/os/memory.h"
#include "tests/doubles/os/fake_kernel.h"

namespace firebreak::watch {
namespace {

constexpr pid_t pid = 10;

struct DepartureTest : testing::Test {
  os::FakeKernel kernel;

  DepartureTest() { kernel.add_process(pid); }
  void set_flags(const std::string& flags, const std::string& name = "a (b) c") {
    kernel.set_file("/proc/10/stat", "10 (" + name + ") S 1 10 10 0 -1 " + flags + " 100 0 0");
  }
  void give(const std::string& path) {
    kernel.give_descriptor(pid, 3, path, os::create_memory_file("x", 0).value());
  }
};

TEST_F(DepartureTest, WhoHoldsTheGpuStays) {
  set_flags("4194560");
  give("/dev/nvidia-uvm");
  EXPECT_EQ(departure_of(kernel, pid), std::nullopt);
}

TEST_F(DepartureTest, WhomLinuxEndsIsLeavingWhateverItHolds) {
  set_flags("4194564");
  give("/dev/nvidia-uvm");
  EXPECT_EQ(departure_of(kernel, pid), "is being ended");
}

TEST_F(DepartureTest, WhoHasClosedTheDescriptorHasLeft) {
  set_flags("4194560");
  give("/dev/null");
  EXPECT_EQ(departure_of(kernel, pid), "has closed the GPU");
}

TEST_F(DepartureTest, OfWhomNothingCanBeReadNothingIsSaid) {
  EXPECT_EQ(departure_of(kernel, pid), std::nullopt);
  kernel.set_file("/proc/10/stat", "10 (cut off");
  EXPECT_EQ(departure_of(kernel, pid), std::nullopt);
  kernel.set_file("/proc/10/stat", "10 (cut off) S 1");
  EXPECT_EQ(departure_of(kernel, pid), std::nullopt);
}

}  // namespace
}  // namespace firebreak::watch
