// SPDX-License-Identifier: Apache-2.0
#include "agent/domains/gpus.h"

#include <gmock/gmock.h>

#include "agent/faults/fault/xid.h"
#include "tests/doubles/agent/surroundings_test_support.h"

namespace firebreak::agent {
namespace {

using fault::DeviceNeed;
using testing::HasSubstr;
using testing::IsEmpty;

/// Domain "a" is on the first of two GPUs, "b" on the second.
struct GpusTest : testing::Test {
  FakeDomains domains;
  Gpus gpus{{{"GPU-x1", "0000:00:05"}, {"GPU-y2", "0000:00:06"}}, domains};

  GpusTest() {
    domains.gpus = {{"a", "GPU-x1"}, {"b", "GPU-y2"}};
    gpus.begin();
  }
  static fault::Fault xid(std::optional<std::uint32_t> gpu, int code, const std::string& words) {
    fault::Fault fault = fault::from_xid(
        *fault::parse_xid("NVRM: Xid (PCI:0000:00:06): " + std::to_string(code) + ", " + words), Monotonic{});
    fault.gpu.number = gpu;
    return fault;
  }
  bool takes_clients(std::size_t domain) { return domains.reports().at(domain).takes_clients(); }
};

TEST_F(GpusTest, OneThatFallsOffTheBusTakesNobodyUntilTheDriverSaysThatItIsWell) {
  const std::string lost = gpus.note(xid(1, 79, "GPU has fallen off the bus."));
  EXPECT_EQ(lost, "GPU 1 (0000:00:06) needs a reboot (Xid 79, RESTART_BM): until then nobody is placed in b");
  EXPECT_TRUE(takes_clients(0));
  EXPECT_FALSE(takes_clients(1));
  EXPECT_EQ(domains.states["b"], mps::DomainState::Draining) << "so that its servers go";
  const std::string well = gpus.note(xid(1, 154, "GPU recovery action changed from 0x2 (x) to 0x0 (None)"));
  EXPECT_EQ(well, "GPU 1 (0000:00:06) is well again: the driver says so");
  domains.states.clear();
  EXPECT_TRUE(takes_clients(1));
  EXPECT_THAT(gpus.note(xid(1, 154, "GPU recovery action changed from 0x2 (x) to 0x0 (None)")), IsEmpty());
}

TEST_F(GpusTest, WhatIsLessChangesNothingAndWhatIsMoreDoes) {
  EXPECT_THAT(gpus.note(xid(1, 94, "Contained: SM (0x1). RST: No, D-RST: Yes")), HasSubstr("needs a drain"));
  EXPECT_FALSE(takes_clients(1));
  EXPECT_THAT(domains.states, IsEmpty()) << "whoever is there may go on";
  EXPECT_THAT(gpus.note(xid(1, 95, "Uncontained: LTC TAG (0x2,0x1). RST: Yes, D-RST: No")),
              HasSubstr("needs a reset (Xid 95, RESET_GPU)"));
  EXPECT_THAT(gpus.note(xid(1, 95, "Uncontained: LTC TAG (0x2,0x1). RST: Yes, D-RST: No")), IsEmpty());
  EXPECT_THAT(gpus.note(xid(1, 48, "An uncorrectable double bit error")), IsEmpty());
  EXPECT_EQ(gpus.all()[1].needs, DeviceNeed::Reset);
}

TEST_F(GpusTest, AFaultThatIsNotTheGpusOrNobodyKnowsWhoseChangesNothing) {
  EXPECT_THAT(gpus.note(xid(1, 94, "Contained: SM (0x1). RST: No, D-RST: No")), IsEmpty());
  EXPECT_THAT(gpus.note(xid(1, 145, "RLW_RXPIPE Nonfatal XC0 i0 Link 13 (0x0)")), IsEmpty());
  EXPECT_THAT(gpus.note(xid({}, 79, "GPU has fallen off the bus.")), IsEmpty());
  EXPECT_THAT(gpus.note(xid(2, 79, "GPU has fallen off the bus.")), IsEmpty()) << "there is no such number";
  fault::Fault elsewhere = xid(1, 79, "GPU has fallen off the bus.");
  elsewhere.gpu.is_here = false;
  EXPECT_THAT(gpus.note(elsewhere), IsEmpty());
  EXPECT_TRUE(takes_clients(0) && takes_clients(1));
}

TEST_F(GpusTest, AnOperatorsWordIsAWayBackByAnyOfItsNames) {
  for (const char* name : {"1", "0000:00:06", "00000000:00:06.0", "GPU-y"}) {
    gpus.note(xid(1, 79, "GPU has fallen off the bus."));
    ASSERT_FALSE(takes_clients(1)) << name;
    domains.states.clear();
    EXPECT_EQ(gpus.recover(name).value(), "GPU 1 (0000:00:06) is well again: an operator says so");
    EXPECT_TRUE(takes_clients(1)) << name;
  }
  EXPECT_EQ(gpus.recover("1").value(), "GPU 1 (0000:00:06) is well");
  for (const char* name : {"2", "", "0000:00:07", "GPU-", "y2"}) EXPECT_FALSE(gpus.recover(name)) << name;
}

TEST_F(GpusTest, NvmlsEchoDoesNotTakeTheWayBackAway) {
  fault::Fault lost = xid(1, 79, "GPU has fallen off the bus.");
  gpus.note(lost);
  fault::Fault well = xid(1, 154, "GPU recovery action changed from 0x2 (x) to 0x0 (None)");
  well.when = from_ns(1'000'000);
  gpus.note(well);
  lost.source = fault::FaultSource::Nvml;
  lost.when = from_ns(2'000'000);
  EXPECT_THAT(gpus.note(lost), IsEmpty());
  lost.when = from_ns(60'000'000'000);
  EXPECT_THAT(gpus.note(lost), HasSubstr("needs a reboot")) << "that is another time";
}

TEST_F(GpusTest, TheNextAgentKnowsIt) {
  gpus.note(xid(1, 79, "GPU has fallen off the bus."));
  FakeDomains others;
  others.gpus = {{"a", "GPU-y2"}, {"b", "GPU-x1"}};
  Gpus next({{"GPU-x1", "0000:00:05"}, {"GPU-y2", "0000:00:06"}}, others);
  next.begin();
  next.restore(gpus.kept());
  EXPECT_THAT(others.gpu_needs["a"], HasSubstr("Xid 79, RESTART_BM"));
  EXPECT_FALSE(others.gpu_needs.contains("b"));
  EXPECT_EQ(next.kept(), gpus.kept());
}

TEST_F(GpusTest, ADomainWhoseGpuIsNotNamedHasTheOnlyOneOrAny) {
  domains.gpus.clear();
  gpus.begin();
  EXPECT_FALSE(gpus.number_of("a"));
  EXPECT_TRUE(gpus.is_ours({.number = 1}));
  Gpus only({{"GPU-x1", "0000:00:05"}}, domains);
  only.begin();
  EXPECT_EQ(only.number_of("a"), 0u);
  EXPECT_FALSE(only.is_ours({.pci = "0000:99:00", .is_here = false}));
}

TEST_F(GpusTest, AGpuWithoutADomainIsNotOurs) {
  domains.gpus = {{"a", "GPU-x1"}, {"b", "GPU-x1"}};
  gpus.begin();
  EXPECT_TRUE(gpus.is_ours({.number = 0}));
  EXPECT_FALSE(gpus.is_ours({.number = 1}));
  EXPECT_THAT(gpus.note(xid(1, 79, "GPU has fallen off the bus.")),
              HasSubstr("none of our domains is there"));
}

}  // namespace
}  // namespace firebreak::agent
