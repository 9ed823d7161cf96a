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

TEST(Describe, AnEmptyFaultStillSaysSomething) {
  EXPECT_EQ(describe(Fault{}), "fault, unknown class, from kmsg");
}

}  // namespace
}  // namespace firebreak::fault
