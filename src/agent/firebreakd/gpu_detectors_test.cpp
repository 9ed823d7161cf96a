// SPDX-License-Identifier: Apache-2.0
#include "agent/firebreakd/gpu_detectors.h"

#include <gmock/gmock.h>

#include "tests/doubles/agent/agent_test_support.h"
#include "tests/doubles/watch/isolation_test_support.h"

namespace firebreak::agent {
namespace {

using fault::FaultSource;
using testing::ElementsAre;
using testing::IsEmpty;

constexpr pid_t rogue = 4711;

/// A driver with fault isolation, and a tenant's process that has a VA space.
class GpuDetectorsTest : public watch::DetectorTest {
 protected:
  GpuDetectorsTest() : tools_(kernel_), module_(kernel_), detectors_(*loop_, kernel_, clock_, domains_, "") {
    kernel_.add_process(rogue);
    kernel_.give_descriptor(rogue, 11, "/dev/nvidia-uvm", watch::FakeUvmTools::va_space());
  }

  void start_with_mode(const std::string& mode) {
    kernel_.set_file(watch::isolation_state_path, "format 1\nmode " + mode + "\n");
    Detectors::Callbacks callbacks;
    callbacks.on_fault = [this](const fault::Fault& fault) { heard_.push_back(fault.source); };
    callbacks.on_contained = [this](pid_t pid, const std::string&) { contained_.push_back(pid); };
    callbacks.on_gpu_opened = [this](pid_t) { opened_ = true; };
    callbacks.on_exit = [](pid_t) {};
    callbacks.on_stray = [](const strays::Stray&) {};
    callbacks.on_guard = [](pid_t, const strays::GuardReport&) {};
    callbacks.on_gap = [this](const watch::Gap& gap) { gaps_.push_back(gap); };
    detectors_.start(std::move(callbacks));
    ASSERT_TRUE(detectors_.follow({.pid = rogue, .gpu = 0, .domain = "a", .tenant = "rogue"}));
    ASSERT_TRUE(run_until([this] { return opened_; }));
  }
  /// UVM tells of a fatal fault first, the module what became of it.
  void fault(const std::string& outcome) {
    abi::UvmFatalFault info{};
    info.event_type = abi::UvmEventType::FatalFault;
    info.fault_type = abi::UvmFaultType::InvalidPde;
    info.access_type = abi::UvmAccessType::Write;
    info.address = 0x7000dead0000;
    tools_.post(abi::UvmEvent::of(info));
    settle();
    module_.add(1, rogue, outcome);
    settle();
  }

  watch::FakeUvmTools tools_;
  watch::FakeIsolation module_;
  FakeDomains domains_;
  GpuDetectors detectors_;
  bool opened_ = false;
  std::vector<FaultSource> heard_;
  std::vector<pid_t> contained_;
};

TEST_F(GpuDetectorsTest, AContainedFaultIsNoFaultOfItsDomain) {
  start_with_mode("on");
  fault("contained");
  EXPECT_THAT(heard_, IsEmpty());
  EXPECT_THAT(contained_, ElementsAre(rogue));
}

TEST_F(GpuDetectorsTest, OneThatWasLetThroughIsHeardOnceAndFromTheModule) {
  start_with_mode("on");
  fault("limit");
  EXPECT_THAT(heard_, ElementsAre(FaultSource::Isolation));
  EXPECT_THAT(contained_, IsEmpty());
}

TEST_F(GpuDetectorsTest, WhatIsMissedOrNotHeardIsSaid) {
  os::FakeRecordFeed log;
  kernel_.set_device("/dev/kmsg", log.device());
  start_with_mode("on");
  EXPECT_THAT(detectors_.not_heard(), IsEmpty());
  log.push_failure(Error{ErrorCode::Protocol, "read: Broken pipe", {}});
  ASSERT_TRUE(run_until([this] { return gaps_.size() == 1; }));
  EXPECT_THAT(detectors_.not_heard(), IsEmpty());
  log.end();
  ASSERT_TRUE(run_until([this] { return gaps_.size() == 2; }));
  EXPECT_THAT(detectors_.not_heard(), ElementsAre(testing::HasSubstr("not heard: kmsg")));
}

TEST_F(GpuDetectorsTest, AModuleThatOnlyReportsLeavesTheWordToUvm) {
  start_with_mode("report");
  fault("reported");
  EXPECT_THAT(heard_, ElementsAre(FaultSource::UvmEvent));
  EXPECT_THAT(contained_, IsEmpty());
}

}  // namespace
}  // namespace firebreak::agent
