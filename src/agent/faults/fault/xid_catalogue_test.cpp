// SPDX-License-Identifier: Apache-2.0
#include <gtest/gtest.h>

#include <algorithm>

#include "agent/faults/fault/xid.h"

namespace firebreak::fault {
namespace {

TEST(XidCatalogue, IsSortedWithoutDuplicates) {
  const auto entries = xid_catalogue();
  EXPECT_EQ(std::ranges::adjacent_find(entries, std::ranges::greater_equal{}, &XidEntry::code),
            entries.end());
}

TEST(XidCatalogue, EveryEntryHasAMeaningAndAnAction) {
  for (const XidEntry& entry : xid_catalogue()) {
    EXPECT_FALSE(entry.meaning.empty()) << entry.code;
    EXPECT_NE(entry.action, XidAction::Unknown) << entry.code;
  }
}

// NVIDIA numbers them without gaps; the last is that of the header that the catalogue was checked against.
TEST(XidCatalogue, HasEveryCodeOfTheDriversHeader) {
  int expected = 1;
  for (const XidEntry& entry : xid_catalogue()) EXPECT_EQ(entry.code, expected++);
  EXPECT_EQ(expected, 177);
}

TEST(XidCatalogue, EveryActionHasNvidiasWord) {
  for (const XidEntry& entry : xid_catalogue())
    EXPECT_STRNE(to_string(entry.action), "UNKNOWN") << entry.code;
}

TEST(XidCatalogue, KnowsTheCodesThatDecisionsAreMadeOn) {
  EXPECT_EQ(find_xid(13).fault_class, FaultClass::Sm);
  EXPECT_EQ(find_xid(31).fault_class, FaultClass::MmuReplayable);
  EXPECT_EQ(find_xid(43).fault_class, FaultClass::Sm);
  for (const int code : {48, 63, 64, 74, 79, 92, 94, 95, 119, 120, 121, 140, 144, 150, 154}) {
    EXPECT_EQ(find_xid(code).fault_class, FaultClass::Device) << code;
  }
  EXPECT_STREQ(to_string(find_xid(31).action), "RESTART_APP");
  EXPECT_STREQ(to_string(find_xid(95).action), "RESET_GPU");
}

TEST(XidCatalogue, AnUnknownCodeSurvivesAsUnknown) {
  const XidEntry entry = find_xid(9999);
  EXPECT_EQ(entry.code, 9999);
  EXPECT_EQ(entry.fault_class, FaultClass::Unknown);
  EXPECT_STREQ(to_string(entry.action), "UNKNOWN");
}

}  // namespace
}  // namespace firebreak::fault
