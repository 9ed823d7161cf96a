// SPDX-License-Identifier: Apache-2.0
#include "agent/faults/fault/fault.h"

#include <gtest/gtest.h>

namespace firebreak::fault {
namespace {

TEST(Describe, NamesEverythingThatIsKnownInOneLine) {
  Fault fault;
  fault.fault_class = FaultClass::MmuReplayable;
  fault.kind = "Xid 31";
  fault.address = 0x7000dead0000;
  fault.pid = 4711;
  fault.source = FaultSource::Xid;
  EXPECT_EQ(describe(fault), "Xid 31, MMU (replayable), address 0x7000dead0000, process 4711, from kmsg");
}

TEST(Describe, AddsTenantAndDomainWhereKnown) {
  Fault fault;
  fault.fault_class = FaultClass::Termination;
  fault.kind = "killed by signal 9";
  fault.tenant = "decode";
  fault.domain = "a";
  fault.source = FaultSource::ProcessExit;
  EXPECT_EQ(describe(fault), "killed by signal 9, termination, tenant decode, domain a, from process exit");
}

TEST(Describe, NamesTheGpuAndWhatItNeeds) {
  Fault fault;
  fault.kind = "Xid 79";
  fault.gpu = {.number = 1, .pci = "0000:3b:00", .instance = "GPU-I:5"};
  fault.needs = DeviceNeed::Reboot;
  EXPECT_EQ(describe(fault), "Xid 79, unknown class, GPU 1 (0000:3b:00 GPU-I:5), needs a reboot, from kmsg");
}

TEST(Gpus, MayBeTheSameUnlessSomethingSaysOtherwise) {
  const Gpu unknown;
  const Gpu first = {.number = 0, .pci = "0000:3b:00"};
  const Gpu second = {.number = 1, .pci = "0000:5e:00"};
  const Gpu elsewhere = {.pci = "0000:99:00", .is_here = false};
  EXPECT_TRUE(may_be_same(unknown, first));
  EXPECT_TRUE(may_be_same(first, first));
  EXPECT_FALSE(may_be_same(first, second));
  EXPECT_TRUE(may_be_same({.number = 0}, first));
  EXPECT_FALSE(may_be_same({.pci = "0000:5e:00"}, first));
  EXPECT_FALSE(may_be_same(elsewhere, unknown)) << "whoever is not known is on this machine";
  EXPECT_TRUE(may_be_same(elsewhere, elsewhere));
}

TEST(Gpus, AddressesAreWrittenInOneWay) {
  for (const char* same : {"0000:3b:00", "0000:3b:00.0", "00000000:3B:00.0", "0:3b:0"})
    EXPECT_EQ(pci_address(same), "0000:3b:00") << same;
  EXPECT_EQ(pci_address("5a2d0001:00:00"), "5a2d0001:00:00");
  for (const char* none : {"", "0000:3b", "0000:3b:00:1", "0000:3b:00.x", "0000:3b:00.00", "0000:3g:00",
                           "::", "123456789:00:00", "0000:123:00", " 000:3b:00"})
    EXPECT_EQ(pci_address(none), "") << none;
}

TEST(Describe, AnEmptyFaultStillSaysSomething) {
  EXPECT_EQ(describe(Fault{}), "fault, unknown class, from kmsg");
}

}  // namespace
}  // namespace firebreak::fault
