// SPDX-License-Identifier: Apache-2.0
#include "inject/catalogue.h"

#include <gmock/gmock.h>

#include <set>
#include <string>
#include <vector>

namespace firebreak::inject {
namespace {

std::string name_of(const ::testing::TestParamInfo<const Kind*>& info) {
  std::string name(info.param->name);
  std::erase(name, '-');
  return name;
}

class EveryKind : public ::testing::TestWithParam<const Kind*> {};
INSTANTIATE_TEST_SUITE_P(Catalogue, EveryKind, ::testing::ValuesIn(catalogue().begin(), catalogue().end()),
                         name_of);

TEST_P(EveryKind, SaysWhatItIs) {
  const Kind& kind = *GetParam();
  EXPECT_THAT(std::string(kind.name), ::testing::MatchesRegex("[a-z0-9]+(-[a-z0-9]+)*"));
  EXPECT_FALSE(kind.summary.empty());
  EXPECT_EQ(kind.summary.find('\n'), std::string_view::npos);
  EXPECT_NE(kind.prepare, nullptr);
  EXPECT_EQ(find(kind.name), &kind);
}

TEST_P(EveryKind, SaysWhatItEnds) {
  const Kind& kind = *GetParam();
  const Expectation& expected = kind.expectation;
  const bool answered = is_fault(kind) && kind.fault_class != fault::FaultClass::Termination;
  EXPECT_EQ(cuda::is_fatal(expected.faulter), answered);
  EXPECT_EQ(expected.faulter == CUDA_SUCCESS, !answered);
  EXPECT_TRUE(!answered || expected.co_client == expected.faulter || expected.co_client == CUDA_SUCCESS);
  EXPECT_TRUE(expected.outsider == CUDA_SUCCESS || kind.fault_class == fault::FaultClass::Device);
}

TEST_P(EveryKind, IsSeenWhereItsClassIsSeen) {
  const Kind& kind = *GetParam();
  const Expectation& expected = kind.expectation;
  if (!is_fault(kind)) {
    EXPECT_THAT(expected.xids, ::testing::IsEmpty());
    return;
  }
  switch (kind.fault_class) {
    case fault::FaultClass::MmuReplayable:
    case fault::FaultClass::MmuNonReplayable:
      EXPECT_EQ(expected.first_seen_by, fault::FaultSource::UvmEvent);
      EXPECT_THAT(expected.xids, ::testing::ElementsAre(31));
      break;
    case fault::FaultClass::Sm:
      // A fault without a line of its own is told of by the server before its channel's Xid comes.
      EXPECT_EQ(expected.first_seen_by,
                expected.xids.size() > 1 ? fault::FaultSource::Xid : fault::FaultSource::MpsLog);
      EXPECT_THAT(expected.xids, ::testing::Contains(43));
      break;
    case fault::FaultClass::Device:
      EXPECT_EQ(expected.first_seen_by, fault::FaultSource::Xid);
      EXPECT_THAT(expected.xids, ::testing::SizeIs(1));
      break;
    default:
      EXPECT_EQ(expected.first_seen_by, fault::FaultSource::MpsLog);
  }
}

TEST_P(EveryKind, HasAKernelWhereAKernelFaults) {
  const Kind& kind = *GetParam();
  // The driver fills with a kernel of its own.
  const bool kernel_faults = kind.fault_class != fault::FaultClass::MmuNonReplayable &&
                             kind.fault_class != fault::FaultClass::Device && kind.name != "memset-unmap";
  EXPECT_EQ(!kind.ptx.empty(), kernel_faults);
}

TEST(Catalogue, IsGroupedByClass) {
  std::vector<fault::FaultClass> groups;
  for (const Kind* kind : catalogue()) {
    if (groups.empty() || groups.back() != kind->fault_class) groups.push_back(kind->fault_class);
  }
  EXPECT_THAT(groups, ::testing::ElementsAre(fault::FaultClass::MmuReplayable,
                                             fault::FaultClass::MmuNonReplayable, fault::FaultClass::Sm,
                                             fault::FaultClass::Termination, fault::FaultClass::Device));
}

TEST(Catalogue, APlayHasARogueAndSurvivors) {
  EXPECT_TRUE(is_demonstrable(*find("misaligned-load")));
  EXPECT_TRUE(is_demonstrable(*find("copy-engine-unmap")));
  EXPECT_FALSE(is_demonstrable(*find("double-bit-ecc")));
  EXPECT_FALSE(is_demonstrable(*find("unmapped-prefetch-far")));
}

TEST(Catalogue, NamesAreUnique) {
  std::set<std::string_view> names;
  for (const Kind* kind : catalogue()) EXPECT_TRUE(names.insert(kind->name).second) << kind->name;
  EXPECT_EQ(names.size(), catalogue().size());
}

TEST(Catalogue, UnknownNameIsNull) { EXPECT_EQ(find("no-such-kind"), nullptr); }

TEST(Catalogue, StraysSayInTheirNamesWhereTheyGoAndFormerNamesAreKnown) {
  for (const char* former :
       {"unmapped-store", "unmapped-load", "unmapped-atomic", "unmapped-reduction", "unmapped-prefetch"}) {
    const Kind* const kind = find(former);
    ASSERT_NE(kind, nullptr);
    EXPECT_EQ(kind->name, std::string(former) + "-far");
    EXPECT_EQ(current_name(former, false), kind->name);
    EXPECT_EQ(kind->expectation.under_guard, UnderGuard::TheSame);
    EXPECT_THAT(std::string(kind->summary), ::testing::HasSubstr("0x7000dead0000"));
  }
  EXPECT_EQ(current_name("unmapped-store", true), find("unmapped-store-low")->name);
  EXPECT_EQ(current_name("trap", true), "trap");
  for (const char* name : {"unmapped-store-low", "unmapped-store-near", "unmapped-store-before"})
    EXPECT_EQ(find(name)->expectation.under_guard, UnderGuard::Contained);
}

TEST(Catalogue, SlipOfTheHandFindsTheKind) {
  EXPECT_EQ(closest("unmaped-store"), find("unmapped-store"));
  EXPECT_EQ(closest("misaligned_load"), find("misaligned-load"));
  EXPECT_EQ(closest("sigkil"), find("sigkill"));
}

TEST(Catalogue, SomethingElseAltogetherFindsNone) {
  EXPECT_EQ(closest("device-on-fire"), nullptr);
  EXPECT_EQ(closest(""), nullptr);
}

}  // namespace
}  // namespace firebreak::inject
