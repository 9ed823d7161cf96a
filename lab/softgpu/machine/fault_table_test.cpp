// SPDX-License-Identifier: Apache-2.0
#include "softgpu/machine/fault_table.h"

#include <gmock/gmock.h>

namespace firebreak::softgpu {
namespace {

using ::testing::HasSubstr;

FaultContext context(pid_t server_pid) {
  return {4711, "decode", server_pid, 8, GpuAccess::Store, 0x7000dead0000};
}

TEST(FaultTable, EveryCauseHasARowThatCanBeTold) {
  for (const FaultProfile& profile : fault_table()) {
    EXPECT_EQ(&profile_of(profile.cause), &profile);
    EXPECT_NE(profile.error, CUDA_SUCCESS);
    EXPECT_GT(profile.faulter_error_ms, 0);
    const auto lines = xid_lines(profile, context(0));
    ASSERT_FALSE(lines.empty());
    // The log tells before the process knows, and everything in its order.
    for (const DelayedLine& line : lines) EXPECT_LT(line.delay_ms, profile.faulter_error_ms);
  }
}

TEST(FaultTable, MmuFaultNamesTheClientAlsoUnderMps) {
  const auto lines = xid_lines(profile_of(FaultCause::UnmappedAccess), context(99));
  ASSERT_EQ(lines.size(), 1u);
  EXPECT_EQ(lines[0].text,
            "NVRM: Xid (PCI:0000:00:05): 31, pid=4711, name=decode, Ch 00000008, intr 00000000. MMU Fault: "
            "ENGINE GRAPHICS GPC0 GPCCLIENT_T1_0 faulted @ 0x7000_dead0000. Fault is of type FAULT_PDE "
            "ACCESS_TYPE_VIRT_WRITE");
}

TEST(FaultTable, SmFaultNamesTheServerUnderMps) {
  const FaultProfile& profile = profile_of(FaultCause::MisalignedAddress);
  EXPECT_THAT(xid_lines(profile, context(99))[1].text,
              HasSubstr(": 43, pid=99, name=nvidia-cuda-mps-server, Ch 00000008"));
  EXPECT_THAT(xid_lines(profile, context(0))[1].text, HasSubstr(": 43, pid=4711, name=decode, Ch 00000008"));
}

}  // namespace
}  // namespace firebreak::softgpu
