// SPDX-License-Identifier: Apache-2.0
/// What a fault of one process does, without MPS: its error, that it stays, what the kernel log and UVM say.
#include <fcntl.h>

#include <gmock/gmock.h>
#include <array>

#include "shared/abi/uvm_tools.h"
#include "softgpu/devices/device_kernel.h"
#include "softgpu/machine/uvm_ring.h"
#include "tests/softgpu_driver/machine_test.h"
#include "tests/softgpu_driver/uvm_tracker.h"

namespace firebreak::test {
namespace {

using ::testing::HasSubstr;

class FaultDelivery : public MachineTest {
 protected:
  FaultDelivery() : devices_(std::make_unique<os::RealKernel>(), state_directory()) {}

  /// The next record of the log; empty when none came.
  std::string next_line(const os::Fd& log) {
    const int number = log.get();
    const auto readable = devices_.poll(std::span(&number, 1), std::chrono::seconds(30));
    if (!readable || readable->empty()) return {};
    std::array<std::byte, 1024> record{};
    const auto size_bytes = devices_.read(log, record);
    return size_bytes ? std::string(reinterpret_cast<const char*>(record.data()), *size_bytes)
                      : std::string();
  }

  softgpu::DeviceKernel devices_;
};

struct Expected {
  const char* kernel;
  CUresult error;
  std::vector<const char*> lines;
};

class FaultDeliveryOfKind : public FaultDelivery, public ::testing::WithParamInterface<Expected> {};

INSTANTIATE_TEST_SUITE_P(
    Kinds, FaultDeliveryOfKind,
    ::testing::Values(
        Expected{"unmapped_store",
                 CUDA_ERROR_ILLEGAL_ADDRESS,
                 {"31, pid=%, name=softgpu_driver_, Ch 00000008, intr 00000000. MMU Fault: ENGINE "
                  "GRAPHICS GPC0 GPCCLIENT_T1_0 faulted @ 0x7000_dead0000. Fault is of type "
                  "FAULT_PDE ACCESS_TYPE_VIRT_WRITE"}},
        Expected{"misaligned",
                 CUDA_ERROR_MISALIGNED_ADDRESS,
                 {"13, pid='<unknown>', name=<unknown>, Graphics SM Warp Exception on (GPC 0, TPC "
                  "0, SM 0): Misaligned Address",
                  "43, pid=%, name=softgpu_driver_, Ch 00000008"}},
        Expected{"trap_now", CUDA_ERROR_LAUNCH_FAILED, {"43, pid=%, name=softgpu_driver_, Ch 00000008"}}),
    [](const auto& test) { return std::string(test.param.kernel); });

TEST_P(FaultDeliveryOfKind, ErrorStaysAndTheKernelLogTells) {
  const auto log = devices_.open("/dev/kmsg", O_RDONLY | O_NONBLOCK);
  ASSERT_TRUE(log);
  const auto client = start_working_client();
  ASSERT_EQ(client->tell(std::string("launch ") + GetParam().kernel), CUDA_SUCCESS);
  EXPECT_EQ(client->tell("sync"), GetParam().error);
  EXPECT_EQ(client->tell("sync"), GetParam().error);
  EXPECT_EQ(client->tell("read 0"), GetParam().error);
  EXPECT_EQ(client->tell("context"), GetParam().error);
  for (std::string line : GetParam().lines) {
    if (const std::size_t pid = line.find('%'); pid != std::string::npos) {
      line.replace(pid, 1, std::to_string(client->pid()));
    }
    EXPECT_THAT(next_line(*log), HasSubstr("NVRM: Xid (PCI:0000:00:05): " + line + "\n"));
  }
}

TEST_F(FaultDelivery, LogHasARecordForEachReadAndIsEmptyInBetween) {
  const auto log = devices_.open("/dev/kmsg", O_RDONLY | O_NONBLOCK);
  ASSERT_TRUE(log);
  std::array<std::byte, 1024> record{};
  const auto nothing = devices_.read(*log, record);
  ASSERT_FALSE(nothing);
  EXPECT_EQ(nothing.error().code, ErrorCode::Unavailable);
  const auto client = start_working_client();
  ASSERT_EQ(client->tell("launch misaligned"), CUDA_SUCCESS);
  EXPECT_THAT(next_line(*log), HasSubstr(": 13,"));
  EXPECT_THAT(next_line(*log), HasSubstr(": 43,"));
  EXPECT_FALSE(devices_.read(*log, record));
  // A log that is opened later tells what was.
  const auto later = devices_.open("/dev/kmsg", O_RDONLY | O_NONBLOCK);
  ASSERT_TRUE(later);
  EXPECT_THAT(next_line(*later), HasSubstr(": 13,"));
}

TEST_F(FaultDelivery, UvmTellsTheAddressOfTheFaultingProcessOnly) {
  const auto faulter = start_working_client();
  const auto other = start_working_client();
  std::vector<Tracker> trackers;
  std::vector<std::uint32_t> statuses;
  for (const Client* client : {faulter.get(), other.get()}) {
    for (const os::Fd& uvm : uvm_descriptors(devices_, *client)) {
      Tracker tracker;
      statuses.push_back(tracker.init(devices_, uvm));
      if (statuses.back() != abi::nv_ok) continue;
      tracker.enable(devices_, abi::uvm_event_mask(abi::UvmEventType::FatalFault));
      trackers.push_back(std::move(tracker));
    }
  }
  // One of the two descriptors of a process is no VA space.
  EXPECT_THAT(statuses, ::testing::UnorderedElementsAre(0, 22, 0, 22));
  ASSERT_EQ(trackers.size(), 2u);

  ASSERT_EQ(faulter->tell("launch unmapped_store"), CUDA_SUCCESS);
  const std::array<int, 2> tools{trackers[0].tools.get(), trackers[1].tools.get()};
  const auto readable = devices_.poll(tools, std::chrono::seconds(30));
  ASSERT_TRUE(readable);
  EXPECT_THAT(*readable, ::testing::ElementsAre(0));
  const auto event = static_cast<const abi::UvmEvent*>(trackers[0].queue.data())->as<abi::UvmFatalFault>();
  EXPECT_EQ(event.event_type, abi::UvmEventType::FatalFault);
  EXPECT_EQ(event.access_type, abi::UvmAccessType::Write);
  EXPECT_EQ(event.address, 0x7000dead0000u);
  EXPECT_EQ(trackers[1].written(), 0u);
}

// As with the driver, which writes an event before it lets the process go on: no thread has to be waited for.
TEST_F(FaultDelivery, WhatUvmHasToTellIsThereForWhoReadsNow) {
  auto va_space = softgpu::UvmDescriptor::create();
  ASSERT_TRUE(va_space);
  const os::Fd duplicate = os::reopen(va_space->fd()).value();
  Tracker tracker;
  ASSERT_EQ(tracker.init(devices_, duplicate), abi::nv_ok);
  tracker.enable(devices_, abi::uvm_event_mask(abi::UvmEventType::FatalFault));
  for (std::uint32_t count = 1; count < Tracker::entries; ++count) {
    va_space->post({.due_ns = softgpu::now_ns(), .address = count});
    std::array<std::byte, 8> wake_up{};
    static_cast<void>(devices_.read(tracker.tools, wake_up));
    ASSERT_EQ(tracker.written(), count);
  }
}

TEST_F(FaultDelivery, MemoryOutlivesEveryProcessThatMappedIt) {
  auto exporter = start_working_client();
  ASSERT_EQ(exporter->tell("launch add_one"), CUDA_SUCCESS);
  ASSERT_EQ(exporter->tell("sync"), CUDA_SUCCESS);
  const Client::Answer exported = exporter->ask("export");
  ASSERT_EQ(exported.result, CUDA_SUCCESS);
  ASSERT_EQ(exporter->tell("launch unmapped_store"), CUDA_SUCCESS);
  EXPECT_EQ(exporter->tell("sync"), CUDA_ERROR_ILLEGAL_ADDRESS);
  exporter->kill();

  const auto importer = start_client();
  ASSERT_EQ(importer->tell("init"), CUDA_SUCCESS);
  ASSERT_EQ(importer->tell("import", exported.descriptor.get()), CUDA_SUCCESS);
  ASSERT_EQ(importer->tell("launch add_one"), CUDA_SUCCESS);
  EXPECT_EQ(importer->ask("read 0").value, 2u);
}

TEST_F(FaultDelivery, ProcessExitsWithAnEndlessKernelOnTheGpu) {
  const Sweeper sweeper = start_sweeper();
  sweeper.client->send("exit");
  sweeper.client->wait_for_end();
  const std::uint32_t last = sweeper.word(0);
  EXPECT_EQ(start_working_client()->tell("sync"), CUDA_SUCCESS);
  EXPECT_EQ(sweeper.word(0), last);
}

TEST_F(FaultDelivery, DeviceMemoryRunsOutAcrossProcesses) {
  std::vector<std::unique_ptr<Client>> clients;
  CUresult result = CUDA_SUCCESS;
  while (result == CUDA_SUCCESS && clients.size() < 40) {
    clients.push_back(start_client());
    ASSERT_EQ(clients.back()->tell("init"), CUDA_SUCCESS);
    result = clients.back()->tell("buffer");
  }
  EXPECT_EQ(result, CUDA_ERROR_OUT_OF_MEMORY);
  EXPECT_EQ(clients.size(), 17u);  // 64 MiB, 4 each
  clients.front()->kill();         // what a dead process held is there again
  EXPECT_EQ(clients.back()->tell("buffer"), CUDA_SUCCESS);
}

}  // namespace
}  // namespace firebreak::test
