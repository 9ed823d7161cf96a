// SPDX-License-Identifier: Apache-2.0
#include "agent/faults/watch/uvm_listener.h"

#include <gmock/gmock.h>

#include "tests/doubles/watch/detector_test_support.h"

namespace firebreak::watch {
namespace {

using testing::HasSubstr;

constexpr pid_t target_pid = 4711;
constexpr const char* uvm_path = "/dev/nvidia-uvm";

abi::UvmEvent fatal_fault(std::uint64_t address) {
  abi::UvmFatalFault info{};
  info.event_type = abi::UvmEventType::FatalFault;
  info.fault_type = abi::UvmFaultType::InvalidPde;
  info.access_type = abi::UvmAccessType::Write;
  info.reason = abi::UvmFatalReason::InvalidAddress;
  info.address = address;
  return abi::UvmEvent::of(info);
}

abi::UvmEvent page_fault(std::uint64_t address, abi::UvmClientType client) {
  abi::UvmGpuFault info{};
  info.event_type = abi::UvmEventType::GpuFault;
  info.client_type = client;
  info.address = address;
  return abi::UvmEvent::of(info);
}

class UvmListenerTest : public DetectorTest {
 protected:
  UvmListenerTest() : tools_(kernel_) { kernel_.add_process(target_pid); }

  UvmListener listener(UvmListenerOptions options = {}) {
    const Target target{.pid = target_pid, .gpu = 2, .domain = "a", .tenant = "decode"};
    return UvmListener(*loop_, kernel_, clock_, target, options, note_fault(), note_end());
  }
  void target_opens_a_va_space() {
    kernel_.give_descriptor(target_pid, 11, uvm_path, FakeUvmTools::va_space());
  }

  FakeUvmTools tools_;
};

TEST_F(UvmListenerTest, ReportsAFatalFaultWithAddressAndProcess) {
  target_opens_a_va_space();
  UvmListener watcher = listener();
  ASSERT_TRUE(watcher.start());
  ASSERT_TRUE(watcher.attached());
  tools_.post(fatal_fault(0x7000dead0000));
  ASSERT_TRUE(run_until([&] { return faults_.size() == 1; }));
  EXPECT_EQ(faults_[0].fault_class, fault::FaultClass::MmuReplayable);
  EXPECT_EQ(faults_[0].kind, "fatal fault: store, invalid PDE");
  EXPECT_EQ(faults_[0].address, 0x7000dead0000u);
  EXPECT_EQ(faults_[0].pid, target_pid);
  EXPECT_EQ(faults_[0].gpu.number, 2u);
  EXPECT_EQ(faults_[0].domain, "a");
  EXPECT_EQ(faults_[0].tenant, "decode");
  EXPECT_EQ(faults_[0].source, fault::FaultSource::UvmEvent);
  EXPECT_EQ(faults_[0].when, clock_.now());
}

/// Gives many, below and above the number of its VA space.
void give_many(os::FakeKernel& kernel, int from, std::size_t count) {
  const os::Fd file = os::create_memory_file("many", 1).value();
  for (std::size_t i = 0; i < count; ++i)
    kernel.give_descriptor(target_pid, from + static_cast<int>(i), "socket:[9]",
                           os::duplicate(file.get()).value());
}

TEST_F(UvmListenerTest, OneOfManyDescriptorsIsLookedThroughInSeveralTurns) {
  give_many(kernel_, 100, 3 * os::most_descriptors_in_a_look);
  kernel_.give_descriptor(target_pid, 5'000, uvm_path, FakeUvmTools::va_space());
  UvmListener watcher = listener();
  ASSERT_TRUE(watcher.start());
  EXPECT_FALSE(watcher.attached());
  ASSERT_TRUE(run_until([&] { return watcher.attached(); }));
  tools_.post(fatal_fault(0x7000dead0000));
  EXPECT_TRUE(run_until([&] { return faults_.size() == 1; }));
}

TEST_F(UvmListenerTest, WhatOneOfManyOpensLaterIsFoundToo) {
  give_many(kernel_, 100, 3 * os::most_descriptors_in_a_look);
  target_opens_a_va_space();
  UvmListener watcher = listener();
  ASSERT_TRUE(watcher.start());
  EXPECT_TRUE(watcher.attached()) << "it is among the first";
  settle();
  kernel_.give_descriptor(target_pid, 5'000, uvm_path, FakeUvmTools::va_space());
  watcher.look_again();
  EXPECT_TRUE(run_until([&] { return watcher.attachments() == 2; }));
  settle();
  watcher.look_again();
  EXPECT_EQ(watcher.attachments(), 2U) << "a part of them does not show that the rest is gone";
}

TEST_F(UvmListenerTest, ALookThatIsCutShortDoesNotShowThatTheRestIsGone) {
  kernel_.give_descriptor(target_pid, 50'000, uvm_path, FakeUvmTools::va_space());
  UvmListener watcher = listener();
  ASSERT_TRUE(watcher.start());
  ASSERT_EQ(watcher.attachments(), 1U);
  give_many(kernel_, 100, os::most_descriptors_of_a_process);
  watcher.look_again();
  for (int turns = 0; turns < 40 && loop_->run_once(Milliseconds(100)); ++turns) {  // runs to its last part
  }
  EXPECT_EQ(watcher.attachments(), 1U);
}

TEST_F(UvmListenerTest, AsksForOneEventAtATime) {
  target_opens_a_va_space();
  UvmListener watcher = listener();
  ASSERT_TRUE(watcher.start());
  EXPECT_EQ(tools_.threshold, 1u);
  EXPECT_EQ(tools_.enabled, (1u << 6) | (1u << 5));
}

TEST_F(UvmListenerTest, TriesTheNextDescriptorWhenOneIsNoVaSpace) {
  kernel_.give_descriptor(target_pid, 3, "/dev/null", FakeUvmTools::va_space());
  kernel_.give_descriptor(target_pid, 10, uvm_path, FakeUvmTools::no_va_space());
  target_opens_a_va_space();
  UvmListener watcher = listener();
  ASSERT_TRUE(watcher.start());
  EXPECT_TRUE(watcher.attached());
  EXPECT_EQ(tools_.refused, 1);
  EXPECT_EQ(tools_.trackers, 1);
}

TEST_F(UvmListenerTest, WhoIsNotToBeLookedAtIsAskedAgain) {
  target_opens_a_va_space();
  kernel_.refuse("/proc/4711/fd", Error{ErrorCode::Timeout, "it does not let itself be looked at", {}});
  UvmListener watcher = listener();
  ASSERT_TRUE(watcher.start());
  EXPECT_FALSE(watcher.attached());
  kernel_.permit("/proc/4711/fd");
  EXPECT_TRUE(run_until([&] { return watcher.attached(); }));
}

TEST_F(UvmListenerTest, OneThatIsAttachedToAndNotToBeLookedAtIsAskedAgain) {
  target_opens_a_va_space();
  UvmListener watcher = listener();
  ASSERT_TRUE(watcher.start());
  EXPECT_TRUE(watcher.attached());
  kernel_.give_descriptor(target_pid, 5'000, uvm_path, FakeUvmTools::va_space());
  kernel_.refuse("/proc/4711/fd", Error{ErrorCode::Timeout, "it does not let itself be looked at", {}});
  watcher.look_again();
  EXPECT_EQ(watcher.attachments(), 1U);
  kernel_.permit("/proc/4711/fd");
  EXPECT_TRUE(run_until([&] { return watcher.attachments() == 2; }));
}

TEST_F(UvmListenerTest, OneOfItsVaSpacesThatIsNotToBeHadIsAskedForAgain) {
  target_opens_a_va_space();
  UvmListener watcher = listener();
  ASSERT_TRUE(watcher.start());
  kernel_.give_descriptor(target_pid, 12, uvm_path, FakeUvmTools::va_space());
  kernel_.refuse_pidfd_getfd(Error{ErrorCode::Timeout, "it does not let itself be looked at", {}});
  watcher.look_again();
  EXPECT_EQ(watcher.attachments(), 1U);
  kernel_.refuse_pidfd_getfd({});
  EXPECT_TRUE(run_until([&] { return watcher.attachments() == 2; }));
}

TEST_F(UvmListenerTest, WhatComesFirstWaitsForNoLookAtOneThatHasNoVaSpaceYet) {
  UvmListener watcher = listener();
  ASSERT_TRUE(watcher.start());
  kernel_.give_descriptor(target_pid, 5, "/dev/null", FakeUvmTools::va_space());
  int looks = 0;
  kernel_.on_link_read([&] { looks += loop_->urgent() >= 0 ? 1 : 0; });
  EXPECT_TRUE(run_until([&] { return looks > 1; }));
  kernel_.on_link_read({});
}

TEST_F(UvmListenerTest, FollowsTheLinkTargetThatTheKernelNames) {
  kernel_.set_uvm_link_target("/memfd:nvidia-uvm (deleted)");
  kernel_.give_descriptor(target_pid, 7, "/memfd:nvidia-uvm (deleted)", FakeUvmTools::va_space());
  UvmListener watcher = listener();
  ASSERT_TRUE(watcher.start());
  EXPECT_TRUE(watcher.attached());
}

TEST_F(UvmListenerTest, WaitsUntilTheTargetHasItsDescriptors) {
  UvmListener watcher = listener();
  ASSERT_TRUE(watcher.start());
  EXPECT_FALSE(watcher.attached());
  kernel_.give_descriptor(target_pid, 10, uvm_path, FakeUvmTools::no_va_space());
  ASSERT_TRUE(run_until([&] { return tools_.refused > 0; }));
  EXPECT_FALSE(watcher.attached());
  target_opens_a_va_space();
  ASSERT_TRUE(run_until([&] { return watcher.attached(); }));
  tools_.post(fatal_fault(64));
  EXPECT_TRUE(run_until([&] { return faults_.size() == 1; }));
}

TEST_F(UvmListenerTest, AttachesToWhatTheTargetHasOpenedSinceWhenItIsToldToLookAgain) {
  target_opens_a_va_space();
  UvmListener watcher = listener();
  ASSERT_TRUE(watcher.start());
  kernel_.give_descriptor(target_pid, 20, uvm_path, FakeUvmTools::va_space());
  kernel_.give_descriptor(target_pid, 21, uvm_path, FakeUvmTools::no_va_space());
  settle();
  EXPECT_EQ(tools_.trackers, 1) << "nobody has said so";
  watcher.look_again();
  EXPECT_EQ(watcher.attachments(), 2U);
  EXPECT_EQ(tools_.refused, 1) << "what is none is asked once";
  tools_.post(fatal_fault(0x40));  // posted into the queue that was made last
  EXPECT_TRUE(run_until([&] { return faults_.size() == 1; }));
}

TEST_F(UvmListenerTest, ANumberThatWasClosedIsAnotherVaSpaceAfterwards) {
  target_opens_a_va_space();
  UvmListener watcher = listener();
  ASSERT_TRUE(watcher.start());
  kernel_.give_descriptor(target_pid, 20, uvm_path, FakeUvmTools::va_space());
  watcher.look_again();
  kernel_.take_descriptor(target_pid, 20);
  watcher.look_again();
  kernel_.give_descriptor(target_pid, 20, uvm_path, FakeUvmTools::va_space());
  watcher.look_again();
  EXPECT_EQ(watcher.attachments(), 2U);
}

/// A driver instance that comes up takes the lowest number, which one that was thrown away may have had.
TEST_F(UvmListenerTest, ANumberThatIsAnotherVaSpacesSinceTheLastLookIsHeardToo) {
  target_opens_a_va_space();
  UvmListener watcher = listener();
  ASSERT_TRUE(watcher.start());
  kernel_.give_descriptor(target_pid, 20, uvm_path, FakeUvmTools::va_space());
  watcher.look_again();
  const int before = tools_.trackers;
  kernel_.take_descriptor(target_pid, 20);
  kernel_.give_descriptor(target_pid, 20, uvm_path, FakeUvmTools::va_space());
  watcher.look_again();
  EXPECT_GT(tools_.trackers, before);
  EXPECT_EQ(watcher.attachments(), 2U) << "the one that has gone is let go";
  tools_.post(fatal_fault(0x40));
  EXPECT_TRUE(run_until([&] { return faults_.size() == 1; }));
}

TEST_F(UvmListenerTest, OfManyVaSpacesTheNewestAreListenedTo) {
  target_opens_a_va_space();
  UvmListener watcher = listener();
  ASSERT_TRUE(watcher.start());
  for (int number = 20; number < 60; ++number) {
    kernel_.give_descriptor(target_pid, number, uvm_path, FakeUvmTools::va_space());
    watcher.look_again();
    tools_.post(fatal_fault(static_cast<std::uint64_t>(number)));
    ASSERT_TRUE(run_until([&] { return faults_.size() == static_cast<std::size_t>(number) - 19; }));
  }
  EXPECT_EQ(watcher.attachments(), 8u);
  EXPECT_TRUE(watcher.attached());
}

TEST_F(UvmListenerTest, WhereAllItsVaSpacesAreGoneTheNextOneIsWaitedFor) {
  target_opens_a_va_space();
  UvmListener watcher = listener();
  ASSERT_TRUE(watcher.start());
  kernel_.take_descriptor(target_pid, 11);
  watcher.look_again();
  EXPECT_FALSE(watcher.attached());
  target_opens_a_va_space();
  EXPECT_TRUE(run_until([&] { return watcher.attached(); }));
}

TEST_F(UvmListenerTest, ReadsMoreEventsThanTheQueueHolds) {
  target_opens_a_va_space();
  UvmListener watcher = listener();
  ASSERT_TRUE(watcher.start());
  std::size_t posted = 0;
  for (int round = 0; round < 5; ++round) {
    for (int i = 0; i < 400; ++i) tools_.post(fatal_fault(++posted));
    ASSERT_TRUE(run_until([&] { return faults_.size() == posted; }));
  }
  for (std::size_t i = 0; i < faults_.size(); ++i) EXPECT_EQ(faults_[i].address, i + 1);
  EXPECT_EQ(tools_.get_index(), posted % UvmQueue::entries);
}

TEST_F(UvmListenerTest, CountsEventsThatMakeNoSense) {
  target_opens_a_va_space();
  UvmListener watcher = listener();
  ASSERT_TRUE(watcher.start());
  abi::UvmEvent garbage;
  garbage.bytes.fill(std::byte{0xee});
  tools_.post(garbage);
  abi::UvmEvent odd = fatal_fault(5);
  odd.bytes[1] = std::byte{99};
  odd.bytes[2] = std::byte{77};
  tools_.post(odd);
  ASSERT_TRUE(run_until([&] { return faults_.size() == 1; }));
  EXPECT_EQ(faults_[0].kind, "fatal fault: access type 77, fault type 99");
  EXPECT_EQ(watcher.counters().other, 1u);
}

TEST_F(UvmListenerTest, TellsACopyEngineFromAnSmWhenItListensToPageFaults) {
  target_opens_a_va_space();
  UvmListener watcher = listener({.page_faults = true, .on_page_fault = {}, .on_attached = {}});
  ASSERT_TRUE(watcher.start());
  EXPECT_EQ(tools_.enabled, (1u << 6) | (1u << 5) | (1u << 3));
  tools_.post(page_fault(0x1000, abi::UvmClientType::Gpc));
  tools_.post(page_fault(0x2000, abi::UvmClientType::Hub));
  tools_.post(fatal_fault(0x1000));
  tools_.post(fatal_fault(0x2000));
  ASSERT_TRUE(run_until([&] { return faults_.size() == 2; }));
  EXPECT_EQ(faults_[0].fault_class, fault::FaultClass::MmuReplayable);
  EXPECT_EQ(faults_[1].fault_class, fault::FaultClass::MmuNonReplayable);
  EXPECT_EQ(watcher.counters().page_faults, 2u);
}

TEST_F(UvmListenerTest, ListensToPageFaultsFromTheTimeThatItIsAsked) {
  target_opens_a_va_space();
  std::vector<std::string> accesses;
  int attached = 0;
  UvmListenerOptions options;
  options.on_page_fault = [&](const PageFault& seen) { accesses.push_back(seen.access); };
  options.on_attached = [&] { ++attached; };
  UvmListener watcher = listener(options);
  ASSERT_TRUE(watcher.start());
  EXPECT_EQ(attached, 1);
  EXPECT_EQ(tools_.enabled, (1u << 6) | (1u << 5));
  ASSERT_TRUE(watcher.listen_to_page_faults());
  EXPECT_EQ(tools_.enabled, (1u << 6) | (1u << 5) | (1u << 3));
  tools_.post(page_fault(0x1000, abi::UvmClientType::Gpc));
  ASSERT_TRUE(run_until([&] { return !accesses.empty(); }));
  EXPECT_EQ(accesses.front(), "access type 0");
  EXPECT_TRUE(faults_.empty());
}

TEST_F(UvmListenerTest, ListensToPageFaultsOfATargetThatComesUpLater) {
  UvmListener watcher = listener();
  ASSERT_TRUE(watcher.start());
  ASSERT_TRUE(watcher.listen_to_page_faults());
  target_opens_a_va_space();
  ASSERT_TRUE(run_until([&] { return watcher.attached(); }));
  EXPECT_EQ(tools_.enabled, (1u << 6) | (1u << 5) | (1u << 3));
}

TEST_F(UvmListenerTest, EndsWithTheTargetButReportsItsFaultFirst) {
  target_opens_a_va_space();
  UvmListener watcher = listener();
  ASSERT_TRUE(watcher.start());
  tools_.post(fatal_fault(0x40));
  kernel_.exit_process(target_pid, {0, 9});
  ASSERT_TRUE(run_until([&] { return ends_.size() == 1; }));
  EXPECT_EQ(faults_.size(), 1u);
  EXPECT_EQ(ends_[0].code, ErrorCode::NotFound);
  EXPECT_FALSE(watcher.attached());
}

TEST_F(UvmListenerTest, EndsWhenTheTargetDiesBeforeItEverUsedTheGpu) {
  UvmListener watcher = listener();
  ASSERT_TRUE(watcher.start());
  kernel_.exit_process(target_pid, {0, 0});
  ASSERT_TRUE(run_until([&] { return ends_.size() == 1; }));
  settle();
  EXPECT_EQ(ends_.size(), 1u);
}

TEST_F(UvmListenerTest, AProcessThatIsNotThereIsAnErrorAtOnce) {
  UvmListener watcher(*loop_, kernel_, clock_, Target{.pid = 1, .gpu = 0, .domain = {}, .tenant = {}}, {},
                      note_fault(), note_end());
  const Status started = watcher.start();
  ASSERT_FALSE(started);
  EXPECT_EQ(started.error().code, ErrorCode::NotFound);
}

TEST_F(UvmListenerTest, SaysWhichRightIsMissingForTheDescriptor) {
  target_opens_a_va_space();
  kernel_.refuse_pidfd_getfd(Error{ErrorCode::PermissionDenied, "Operation not permitted", {}});
  UvmListener watcher = listener();
  const Status started = watcher.start();
  ASSERT_FALSE(started);
  EXPECT_EQ(started.error().code, ErrorCode::PermissionDenied);
  EXPECT_THAT(to_string(started.error()), HasSubstr("CAP_SYS_PTRACE"));
  kernel_.exit_process(target_pid, {0, 0});
  settle();
  EXPECT_TRUE(ends_.empty());
}

TEST_F(UvmListenerTest, SaysWhichRightIsMissingForTheNode) {
  target_opens_a_va_space();
  kernel_.refuse(abi::uvm_tools_path, Error{ErrorCode::PermissionDenied, "open: Permission denied", {}});
  UvmListener watcher = listener();
  const Status started = watcher.start();
  ASSERT_FALSE(started);
  EXPECT_THAT(to_string(started.error()), HasSubstr("/dev/nvidia-uvm-tools"));
}

TEST_F(UvmListenerTest, SaysWhatToDoWithoutTheNode) {
  target_opens_a_va_space();
  kernel_.remove(abi::uvm_tools_path);
  UvmListener watcher = listener();
  const Status started = watcher.start();
  ASSERT_FALSE(started);
  EXPECT_EQ(started.error().code, ErrorCode::NotFound);
  EXPECT_THAT(to_string(started.error()), HasSubstr("nvidia-modprobe"));
}

TEST_F(UvmListenerTest, AnotherStatusOfTheDriverIsAnError) {
  target_opens_a_va_space();
  tools_.init_status = 59;
  UvmListener watcher = listener();
  const Status started = watcher.start();
  ASSERT_FALSE(started);
  EXPECT_EQ(started.error().code, ErrorCode::Device);
  EXPECT_THAT(started.error().message, HasSubstr("59"));
}

TEST_F(UvmListenerTest, CountsWhatTheDriverDropped) {
  target_opens_a_va_space();
  UvmListener watcher = listener();
  ASSERT_TRUE(watcher.start());
  for (unsigned i = 0; i < UvmQueue::entries + 9; ++i) tools_.post(fatal_fault(64 * i));
  ASSERT_TRUE(run_until([&] { return faults_.size() == UvmQueue::entries - 1; }));
  settle();
  EXPECT_EQ(watcher.counters().dropped, 10u);
}

TEST_F(UvmListenerTest, WhatTheDriverDroppedIsAGap) {
  target_opens_a_va_space();
  UvmListenerOptions options;
  options.on_gap = note_gap();
  UvmListener watcher = listener(options);
  ASSERT_TRUE(watcher.start());
  for (unsigned i = 0; i < UvmQueue::entries + 9; ++i) tools_.post(fatal_fault(64 * i));
  ASSERT_TRUE(run_until([&] { return !gaps_.empty(); }));
  settle();
  ASSERT_EQ(gaps_.size(), 1u);
  EXPECT_EQ(gaps_[0].source, fault::FaultSource::UvmEvent);
  EXPECT_EQ(gaps_[0].pid, target_pid);
  EXPECT_EQ(gaps_[0].domain, "a");
  EXPECT_TRUE(gaps_[0].danger);
}

// A fatal one is told once more, as such.
TEST_F(UvmListenerTest, PageFaultsThatTheDriverDroppedAreNoDanger) {
  target_opens_a_va_space();
  UvmListenerOptions options;
  options.page_faults = true;
  options.on_gap = note_gap();
  UvmListener watcher = listener(options);
  ASSERT_TRUE(watcher.start());
  for (unsigned i = 0; i < UvmQueue::entries + 9; ++i) tools_.post(page_fault(64, abi::UvmClientType::Gpc));
  ASSERT_TRUE(run_until([&] { return !gaps_.empty(); }));
  EXPECT_FALSE(gaps_[0].danger);
}

TEST_F(UvmListenerTest, ReadsTheSecondLayoutWhereTheDriverHasIt) {
  tools_.knows_v2 = true;
  target_opens_a_va_space();
  UvmListener watcher =
      listener({.page_faults = true,
                .on_page_fault = [this](const PageFault& page_fault) { faults_.push_back(page_fault.fault); },
                .on_gap = {},
                .on_attached = {}});
  ASSERT_TRUE(watcher.start());
  EXPECT_EQ(watcher.layout(), UvmLayout::V2);
  abi::UvmGpuFaultV2 page{};
  page.event_type = abi::UvmEventType::GpuFault;
  page.fault_type = abi::UvmFaultType::InvalidPte;
  page.access_type = abi::UvmAccessType::Read;
  page.client_type = abi::UvmClientType::Hub;
  page.gpu_index = 1;
  page.address = 0x5000;
  tools_.post(abi::UvmEventV2::of(page));
  abi::UvmFatalFaultV2 fatal{};
  fatal.event_type = abi::UvmEventType::FatalFault;
  fatal.fault_type = abi::UvmFaultType::InvalidPte;
  fatal.access_type = abi::UvmAccessType::Read;
  fatal.reason = abi::UvmFatalReason::InvalidAddress;
  fatal.processor_index = 1;
  fatal.address = 0x5000;
  tools_.post(abi::UvmEventV2::of(fatal));
  ASSERT_TRUE(run_until([&] { return faults_.size() == 2; }));
  EXPECT_EQ(faults_[0].kind, "page fault: load, invalid PTE");
  EXPECT_FALSE(faults_[0].conclusive);
  EXPECT_EQ(faults_[1].kind, "fatal fault: load, invalid PTE");
  EXPECT_EQ(faults_[1].fault_class, fault::FaultClass::MmuNonReplayable);
  EXPECT_EQ(faults_[1].address, 0x5000u);
}

TEST_F(UvmListenerTest, AFatalFaultOfTheCpuIsNoGpuFault) {
  target_opens_a_va_space();
  UvmListener watcher = listener();
  ASSERT_TRUE(watcher.start());
  abi::UvmEvent of_the_cpu = fatal_fault(64);
  of_the_cpu.bytes[1] = std::byte{0};
  tools_.post(of_the_cpu);
  tools_.post(fatal_fault(128));
  ASSERT_TRUE(run_until([&] { return !faults_.empty(); }));
  EXPECT_EQ(faults_[0].address, 128u);
  EXPECT_EQ(watcher.counters().cpu_faults, 1u);
}

TEST_F(UvmListenerTest, AnOverflowIsTold) {
  target_opens_a_va_space();
  UvmListener watcher = listener();
  ASSERT_TRUE(watcher.start());
  abi::UvmEvent overflow;
  overflow.bytes[0] = std::byte{5};
  tools_.post(overflow);
  ASSERT_TRUE(run_until([&] { return faults_.size() == 1; }));
  EXPECT_FALSE(faults_[0].conclusive);
  EXPECT_FALSE(faults_[0].address);
  EXPECT_EQ(watcher.counters().overflows, 1u);
}

/// The driver is none of those we know.
class UnknownDriverTest : public UvmListenerTest {
 protected:
  UnknownDriverTest() { target_opens_a_va_space(); }

  void expect_refusal(const std::string& words) {
    UvmListener watcher = listener();
    const Status started = watcher.start();
    ASSERT_FALSE(started);
    EXPECT_EQ(started.error().code, ErrorCode::Protocol);
    EXPECT_THAT(started.error().message, HasSubstr(words));
    EXPECT_FALSE(watcher.attached());
  }
};

TEST_F(UnknownDriverTest, LongerEventsAreRefused) {
  tools_.entry_bytes_v1 = 72;
  expect_refusal("longer than those of layout V1");
}

TEST_F(UnknownDriverTest, ShorterEventsAreRefused) {
  tools_.entry_bytes_v1 = 56;
  expect_refusal("shorter than those of layout V1");
}

TEST_F(UnknownDriverTest, AnotherSizeOfTheSecondLayoutIsRefused) {
  tools_.knows_v2 = true;
  tools_.entry_bytes_v2 = 80;
  expect_refusal("longer than those of layout V2");
}

TEST_F(UnknownDriverTest, NeitherLayoutIsRefused) {
  tools_.knows_v1 = false;
  expect_refusal("neither layout");
}

TEST_F(UnknownDriverTest, AnIndexOutOfRangeEndsTheListener) {
  UvmListener watcher = listener();
  ASSERT_TRUE(watcher.start());
  tools_.corrupt_put_index();
  ASSERT_TRUE(run_until([&] { return ends_.size() == 1; }));
  EXPECT_EQ(ends_[0].code, ErrorCode::Protocol);
  EXPECT_TRUE(faults_.empty());
  EXPECT_FALSE(watcher.attached());
}

TEST_F(UnknownDriverTest, ATimeThatCannotBeEndsTheListener) {
  UvmListener watcher = listener();
  ASSERT_TRUE(watcher.start());
  abi::UvmFatalFault info = fatal_fault(64).as<abi::UvmFatalFault>();
  info.timestamp_ns = 0x7000dead0000;
  tools_.post(abi::UvmEvent::of(info));
  ASSERT_TRUE(run_until([&] { return ends_.size() == 1; }));
  EXPECT_THAT(to_string(ends_[0]), HasSubstr("makes no sense"));
  EXPECT_TRUE(faults_.empty());
}

}  // namespace
}  // namespace firebreak::watch
