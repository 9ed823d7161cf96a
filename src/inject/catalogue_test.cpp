// SPDX-License-Identifier: Apache-2.0
#include "inject/catalogue.h"

#include <gmock/gmock.h>

#include <set>
#include <string>

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
  EXPECT_THAT(std::string(kind.name), ::testing::MatchesRegex("[a-z]+(-[a-z]+)*"));
  EXPECT_FALSE(kind.summary.empty());
  EXPECT_EQ(kind.summary.find('\n'), std::string_view::npos);
  EXPECT_NE(kind.prepare, nullptr);
  EXPECT_EQ(find(kind.name), &kind);
}

TEST_P(EveryKind, EndsAProcessAndNeverTheDevice) {
  const Kind& kind = *GetParam();
  EXPECT_NE(kind.fault_class, fault::FaultClass::Device);
  EXPECT_NE(kind.fault_class, fault::FaultClass::Unknown);
  const auto& [faulter, co_client, outsider, xids, first_seen_by] = kind.expectation;
  const bool dies = kind.fault_class == fault::FaultClass::Termination;
  EXPECT_EQ(cuda::is_fatal(faulter), !dies);
  EXPECT_EQ(faulter == CUDA_SUCCESS, dies);
  EXPECT_EQ(outsider, CUDA_SUCCESS);
  EXPECT_TRUE(dies || co_client == faulter || co_client == CUDA_SUCCESS);
}

TEST_P(EveryKind, IsSeenWhereItsClassIsSeen) {
  const Kind& kind = *GetParam();
  switch (kind.fault_class) {
    case fault::FaultClass::MmuReplayable:
    case fault::FaultClass::MmuNonReplayable:
      EXPECT_EQ(kind.expectation.first_seen_by, fault::FaultSource::UvmEvent);
      EXPECT_THAT(kind.expectation.xids, ::testing::ElementsAre(31));
      break;
    case fault::FaultClass::Sm:
      EXPECT_EQ(kind.expectation.first_seen_by, fault::FaultSource::Xid);
      EXPECT_THAT(kind.expectation.xids, ::testing::Contains(43));
      break;
    default:
      EXPECT_EQ(kind.expectation.first_seen_by, fault::FaultSource::ProcessExit);
  }
}

TEST_P(EveryKind, HasAKernelUnlessAnotherEngineFaults) {
  const Kind& kind = *GetParam();
  EXPECT_EQ(kind.ptx.empty(), kind.fault_class == fault::FaultClass::MmuNonReplayable);
}

TEST(Catalogue, NamesAreUnique) {
  std::set<std::string_view> names;
  for (const Kind* kind : catalogue()) EXPECT_TRUE(names.insert(kind->name).second) << kind->name;
  EXPECT_EQ(names.size(), catalogue().size());
}

TEST(Catalogue, UnknownNameIsNull) { EXPECT_EQ(find("no-such-kind"), nullptr); }

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
