// SPDX-License-Identifier: Apache-2.0
/// Managed and sparse ranges as other processes see and make them.
#include <gmock/gmock.h>

#include <algorithm>
#include <cstring>
#include <string>

#include "shared/abi/uvm_ranges.h"
#include "softgpu/machine/device_uuid.h"
#include "tests/softgpu_driver/machine_test.h"
#include "tests/softgpu_driver/uvm_tracker.h"

namespace firebreak::test {
namespace {

/// Where sanitizers have a program's own data and no program is loaded.
constexpr std::uint64_t place = 0x567000000000;
constexpr std::uint64_t size_bytes = std::uint64_t{1} << 30;
constexpr std::uint64_t stray = place + 0x123450;
constexpr std::uint64_t all_faults =
    abi::uvm_event_mask(abi::UvmEventType::GpuFault) | abi::uvm_event_mask(abi::UvmEventType::FatalFault);

class UvmRangesOfOthers : public MachineTest {
 protected:
  UvmRangesOfOthers() : devices_(std::make_unique<os::RealKernel>(), state_directory()) {}

  static std::string range(const std::string& verb) {
    return verb + " " + std::to_string(place) + " " + std::to_string(size_bytes);
  }
  static CUresult run(Client& client, const std::string& kernel, std::uint64_t address = stray) {
    const CUresult launched = client.tell("launch " + kernel + " " + std::to_string(address));
    return launched == CUDA_SUCCESS ? client.tell("sync") : launched;
  }
  abi::UvmGpuFault next_fault(Tracker& tracker) {
    const auto event = tracker.next(devices_);
    EXPECT_TRUE(event && event->type() == abi::UvmEventType::GpuFault);
    return event ? event->as<abi::UvmGpuFault>() : abi::UvmGpuFault{};
  }
  /// What each of the client's descriptors answers to the same request.
  template <class Argument>
  std::vector<std::uint32_t> request(const Client& client, unsigned long number, Argument argument) {
    std::vector<std::uint32_t> statuses;
    for (const os::Fd& uvm : uvm_descriptors(devices_, client)) {
      EXPECT_TRUE(devices_.ioctl(uvm, number, &argument));
      statuses.push_back(argument.rm_status);
    }
    return statuses;
  }

  softgpu::DeviceKernel devices_;
};

TEST_F(UvmRangesOfOthers, AStrayIsToldWithItsAddressAndIsNotFatal) {
  const auto client = start_working_client();
  ASSERT_EQ(client->tell(range("make_managed")), CUDA_SUCCESS);
  Tracker tracker = track(devices_, *client, all_faults);
  EXPECT_EQ(run(*client, "store"), CUDA_SUCCESS);
  const abi::UvmGpuFault store = next_fault(tracker);
  EXPECT_EQ(store.address, stray);
  EXPECT_EQ(store.access_type, abi::UvmAccessType::Write);
  EXPECT_EQ(store.client_type, abi::UvmClientType::Gpc);
  EXPECT_EQ(run(*client, "store"), CUDA_SUCCESS);  // the memory is there: no fault
  EXPECT_EQ(run(*client, "load", stray + size_bytes / 2), CUDA_SUCCESS);
  const abi::UvmGpuFault load = next_fault(tracker);
  EXPECT_EQ(load.address, stray + size_bytes / 2);
  EXPECT_EQ(load.access_type, abi::UvmAccessType::Read);
  EXPECT_EQ(run(*client, "add_one", stray + size_bytes / 4), CUDA_SUCCESS);
  EXPECT_EQ(next_fault(tracker).access_type, abi::UvmAccessType::Atomic);
  EXPECT_EQ(tracker.written(), 3U);
  EXPECT_EQ(run(*client, "add_one", 0x500000000000), CUDA_SUCCESS);
  EXPECT_EQ(client->ask("read 0").value, 1U);
}

TEST_F(UvmRangesOfOthers, ARangeThatIsMadeAgainIsToldOfAgain) {
  const auto client = start_working_client();
  Tracker tracker = track(devices_, *client, all_faults);
  ASSERT_EQ(client->tell(range("make_managed")), CUDA_SUCCESS);
  for (int time = 0; time < 3; ++time) {
    ASSERT_EQ(run(*client, "store"), CUDA_SUCCESS);
    EXPECT_EQ(next_fault(tracker).address, stray);
    ASSERT_EQ(client->tell(range("make_hole")), CUDA_SUCCESS);
    ASSERT_EQ(client->tell("allocate"), CUDA_SUCCESS);  // the driver notices when it maps something
    ASSERT_EQ(client->tell(range("make_managed")), CUDA_SUCCESS);
  }
}

TEST_F(UvmRangesOfOthers, WithoutARangeTheSameStrayIsFatal) {
  const auto client = start_working_client();
  Tracker tracker = track(devices_, *client, abi::uvm_event_mask(abi::UvmEventType::FatalFault));
  ASSERT_EQ(client->tell(range("make_managed")), CUDA_SUCCESS);
  EXPECT_EQ(run(*client, "store"), CUDA_SUCCESS);
  ASSERT_EQ(client->tell(range("make_hole")), CUDA_SUCCESS);
  EXPECT_EQ(run(*client, "store", stray + size_bytes / 2), CUDA_ERROR_ILLEGAL_ADDRESS);
  const auto event = tracker.next(devices_);
  ASSERT_TRUE(event);
  EXPECT_EQ(event->as<abi::UvmFatalFault>().address, stray + size_bytes / 2);
  EXPECT_EQ(tracker.written(), 1U);  // serviced ones are of another type
}

TEST_F(UvmRangesOfOthers, AJumpIsFatalAllTheSame) {
  const auto client = start_working_client();
  Tracker tracker = track(devices_, *client, all_faults);
  ASSERT_EQ(client->tell(range("make_managed")), CUDA_SUCCESS);
  EXPECT_EQ(run(*client, "jump"), CUDA_ERROR_ILLEGAL_ADDRESS);
  EXPECT_EQ(next_fault(tracker).address, stray);
  const auto event = tracker.next(devices_);
  ASSERT_TRUE(event);
  EXPECT_EQ(event->type(), abi::UvmEventType::FatalFault);
}

TEST_F(UvmRangesOfOthers, ACopyEnginesStrayIsToldAsTheHubs) {
  const auto client = start_client();
  ASSERT_EQ(client->tell("init"), CUDA_SUCCESS);
  ASSERT_EQ(client->tell("buffer " + std::to_string(place)), CUDA_SUCCESS);
  Tracker tracker = track(devices_, *client, all_faults);
  ASSERT_EQ(client->tell(range("copy_into_hole")), CUDA_SUCCESS);
  const abi::UvmGpuFault copy = next_fault(tracker);
  EXPECT_EQ(copy.address, place);
  EXPECT_EQ(copy.access_type, abi::UvmAccessType::Write);
  EXPECT_EQ(copy.client_type, abi::UvmClientType::Hub);
  EXPECT_EQ(client->tell("sync"), CUDA_SUCCESS);
}

TEST_F(UvmRangesOfOthers, UnderMpsNobodyIsHarmed) {
  start_mps();
  const auto client = start_working_client();
  const auto neighbour = start_working_client();
  ASSERT_EQ(client->tell(range("make_managed")), CUDA_SUCCESS);
  EXPECT_EQ(run(*client, "store"), CUDA_SUCCESS);
  EXPECT_EQ(run(*neighbour, "add_one", 0x500000000000), CUDA_SUCCESS);
  EXPECT_EQ(neighbour->ask("read 0").value, 1U);
  // Each client has a VA space of its own.
  EXPECT_EQ(run(*neighbour, "store"), CUDA_ERROR_ILLEGAL_ADDRESS);
}

TEST_F(UvmRangesOfOthers, SparseRangesComeFromAnyoneWithTheDescriptor) {
  const auto client = start_working_client();
  const auto other = start_working_client();
  Tracker tracker = track(devices_, *client, all_faults);
  const abi::UvmRange whole{place, size_bytes, 0, 0};
  const abi::UvmMapExternalSparse sparse{place, size_bytes, softgpu::device_uuid, 0, 0};
  using ::testing::UnorderedElementsAre;
  EXPECT_THAT(request(*client, abi::uvm_create_external_range, whole), UnorderedElementsAre(0, 22));
  EXPECT_THAT(request(*client, abi::uvm_map_external_sparse, sparse), UnorderedElementsAre(0, 22));
  EXPECT_EQ(run(*client, "store"), CUDA_SUCCESS);
  EXPECT_EQ(run(*client, "load"), CUDA_SUCCESS);
  EXPECT_EQ(run(*client, "add_one"), CUDA_SUCCESS);
  EXPECT_EQ(tracker.written(), 0U);
  // What the client has mapped, or covers itself, is in nobody's reach.
  const abi::UvmRange buffer{0x500000000000, 65536, 0, 0};
  EXPECT_THAT(request(*client, abi::uvm_create_external_range, buffer), UnorderedElementsAre(104, 22));
  ASSERT_EQ(other->tell(range("make_managed")), CUDA_SUCCESS);
  EXPECT_THAT(request(*other, abi::uvm_create_external_range, whole), UnorderedElementsAre(104, 22));
  EXPECT_THAT(request(*client, abi::uvm_free, whole), UnorderedElementsAre(0, 22));
  EXPECT_EQ(run(*client, "store"), CUDA_ERROR_ILLEGAL_ADDRESS);
  EXPECT_EQ(run(*other, "store"), CUDA_SUCCESS);
}

TEST_F(UvmRangesOfOthers, AJumpIntoSparseIsFatal) {
  const auto client = start_working_client();
  request(*client, abi::uvm_create_external_range, abi::UvmRange{place, size_bytes, 0, 0});
  request(*client, abi::uvm_map_external_sparse,
          abi::UvmMapExternalSparse{place, size_bytes, softgpu::device_uuid, 0, 0});
  EXPECT_EQ(run(*client, "load"), CUDA_SUCCESS);
  EXPECT_EQ(run(*client, "jump"), CUDA_ERROR_ILLEGAL_ADDRESS);
}

TEST_F(UvmRangesOfOthers, OtherDescriptorsKnowNoRanges) {
  const os::Fd file = os::create_memory_file("plain", 4096).value();
  abi::UvmRange whole{place, size_bytes, 0, 0};
  EXPECT_FALSE(devices_.ioctl(file, abi::uvm_create_external_range, &whole));
}

}  // namespace
}  // namespace firebreak::test
