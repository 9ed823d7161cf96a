// SPDX-License-Identifier: Apache-2.0
#include "agent/faults/watch/process_scan.h"

#include <gtest/gtest.h>

#include "ground/os/memory.h"
#include "tests/doubles/os/fake_kernel.h"

namespace firebreak::watch {
namespace {

using namespace std::string_literals;

struct ProcessScanTest : testing::Test {
  os::FakeKernel kernel;

  void add(pid_t pid, const std::string& name, const std::string& command,
           const std::string& environment = "", const std::string& started = "100") {
    kernel.add_process(pid);
    const std::string folder = "/proc/" + std::to_string(pid);
    kernel.set_file(folder + "/comm", name + "\n");
    kernel.set_file(folder + "/cmdline", command);
    kernel.set_file(folder + "/stat", std::to_string(pid) +
                                          " (a) b) S 4 5 6 7 8 9 10 11 12 13 14 15 16 17 18 19 20 21 " +
                                          started + " 23 24\n");
    kernel.set_file(folder + "/environ", environment);
    kernel.give_descriptor(pid, 0, "/dev/null", os::create_memory_file("x", 0).value());
  }
  void give_uvm(pid_t pid, const std::string& path = "/dev/nvidia-uvm") {
    kernel.give_descriptor(pid, 9, path, os::create_memory_file("uvm", 0).value());
  }
};

TEST_F(ProcessScanTest, FindsProcessesWithAUvmDescriptorOnce) {
  add(10, "python3", "python3\0train.py\0"s, "A=1\0CUDA_MPS_PIPE_DIRECTORY=/run/a\0B=2\0"s);
  add(11, "bash", "bash\0"s);
  give_uvm(10);
  ProcessScan scan(kernel, {});
  const auto found = scan.look();
  ASSERT_EQ(found.processes.size(), 1u);
  EXPECT_EQ(found.processes[0].pid, 10);
  EXPECT_EQ(found.processes[0].name, "python3");
  EXPECT_EQ(found.processes[0].domain, "/run/a");
  EXPECT_TRUE(scan.look().processes.empty());
}

TEST_F(ProcessScanTest, FindsAProcessThatStartsToUseTheGpuLater) {
  add(10, "python3", "python3\0"s);
  ProcessScan scan(kernel, {.young_looks = 2});
  for (int round = 0; round < 5; ++round) EXPECT_TRUE(scan.look().processes.empty());
  give_uvm(10);
  EXPECT_EQ(scan.look().processes.size(), 1u);
}

TEST_F(ProcessScanTest, TakesAPidThatCameBackForAnotherProcess) {
  add(10, "one", "one\0"s);
  give_uvm(10);
  ProcessScan scan(kernel, {});
  EXPECT_EQ(scan.look().processes.size(), 1u);
  kernel.exit_process(10, {});
  ASSERT_TRUE(kernel.try_wait(10));
  add(10, "two", "two\0"s, "", "200");
  give_uvm(10);
  ProcessScan::Found found;
  for (int round = 0; round < 100 && found.processes.empty(); ++round) found = scan.look();
  ASSERT_EQ(found.processes.size(), 1u);
  EXPECT_EQ(found.processes[0].name, "two");
}

TEST_F(ProcessScanTest, KernelThreadsAreNotLookedInto) {
  add(10, "kthread", "");
  give_uvm(10);
  kernel.set_file("/proc/10/stat", "10 (kthread) S 2 0 0 0 -1 2129984 0 0 0 0 0 0 0 0 20 0 1 0 12 0\n");
  EXPECT_TRUE(ProcessScan(kernel, {}).look().processes.empty());
}

TEST_F(ProcessScanTest, ServersAreNoTenants) {
  add(20, "nvidia-cuda-mps", "/usr/bin/nvidia-cuda-mps-server\0"s,
      "CUDA_MPS_PIPE_DIRECTORY=/run/a\0CUDA_MPS_LOG_DIRECTORY=/run/a-log\0"s);
  give_uvm(20);
  add(21, "grep", "grep\0-r\0nvidia-cuda-mps-server\0"s);
  ProcessScan scan(kernel, {});
  const auto found = scan.look();
  EXPECT_TRUE(found.processes.empty());
  ASSERT_EQ(found.servers.size(), 1u);
  EXPECT_EQ(found.servers[0].pid, 20);
  EXPECT_EQ(found.servers[0].domain, "/run/a");
  EXPECT_EQ(found.servers[0].log_directory, "/run/a-log");
}

TEST_F(ProcessScanTest, WhoWatchesOthersIsNoTenant) {
  add(10, "firebreakd", "firebreakd\0"s);
  give_uvm(10);
  add(11, "monitor", "monitor\0"s);
  give_uvm(11);
  kernel.give_descriptor(11, 10, "/dev/nvidia-uvm-tools", os::create_memory_file("tools", 0).value());
  add(12, "ourselves", "firebreak\0"s);
  give_uvm(12);
  ScanOptions options;
  options.ignored_pid = 12;
  ProcessScan scan(kernel, options);
  EXPECT_TRUE(scan.look().processes.empty());
}

TEST_F(ProcessScanTest, WhoUsesAnotherGpuIsNotOurs) {
  add(10, "p", "p\0"s, "GPU=/b\0"s);
  add(11, "p", "p\0"s, "GPU=/a\0"s);
  add(12, "p", "p\0"s);
  for (const pid_t pid : {10, 11, 12}) give_uvm(pid);
  ScanOptions options;
  options.gpu_variable = "GPU";
  const auto only = [&](const ScanOptions& wanted) {
    const auto found = ProcessScan(kernel, wanted).look().processes;
    return found.size() == 1 ? found[0].pid : 0;
  };
  EXPECT_EQ(only(options), 12);
  options.gpu_value = "/a";
  EXPECT_EQ(only(options), 11);
}

TEST_F(ProcessScanTest, TheFirstRoundLooksAtEverybody) {
  for (pid_t pid = 100; pid < 200; ++pid) {
    add(pid, "p", "p\0"s);
    give_uvm(pid);
  }
  ProcessScan scan(kernel, {.most_looks = 8});
  EXPECT_EQ(scan.look().processes.size(), 100u);
}

TEST_F(ProcessScanTest, LaterRoundsTakeThemInTurn) {
  for (pid_t pid = 100; pid < 200; ++pid) add(pid, "p", "p\0"s);
  ProcessScan scan(kernel, {.most_looks = 8, .young_looks = 1});
  EXPECT_TRUE(scan.look().processes.empty());
  for (pid_t pid = 100; pid < 200; ++pid) give_uvm(pid);
  std::size_t found = 0;
  for (int round = 0; round < 50; ++round) {
    const std::size_t now = scan.look().processes.size();
    EXPECT_LE(now, 8u);
    found += now;
  }
  EXPECT_EQ(found, 100u);
}

TEST_F(ProcessScanTest, ANewProcessDoesNotWaitForTheOthers) {
  for (pid_t pid = 100; pid < 200; ++pid) add(pid, "p", "p\0"s);
  ProcessScan scan(kernel, {.most_looks = 4});
  scan.look();
  add(50, "new", "new\0"s);
  give_uvm(50);
  EXPECT_EQ(scan.look().processes.size(), 1u);
}

TEST_F(ProcessScanTest, CountsWhomItMayNotLookInto) {
  add(10, "secret", "secret\0"s);
  kernel.refuse("/proc/10/fd", Error{ErrorCode::PermissionDenied, "Permission denied", {}});
  ProcessScan scan(kernel, {});
  EXPECT_TRUE(scan.look().processes.empty());
  EXPECT_EQ(scan.refused(), 1u);
}

}  // namespace
}  // namespace firebreak::watch
