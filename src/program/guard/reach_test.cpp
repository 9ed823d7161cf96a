// SPDX-License-Identifier: Apache-2.0
#include "program/guard/reach.h"

#include <gmock/gmock.h>

namespace firebreak::guard {
namespace {

using testing::ElementsAre;
using Range = os::AddressRange;

CUmemAccessDesc rights(int device, CUmemAccess_flags flags) {
  return {{CU_MEM_LOCATION_TYPE_DEVICE, device}, flags};
}
constexpr auto all = CU_MEM_ACCESS_FLAGS_PROT_READWRITE;
constexpr auto none = CU_MEM_ACCESS_FLAGS_PROT_NONE;

TEST(Reach, WhatOneCanReachIsReached) {
  Reach reach;
  reach.note({0, 100}, rights(0, all));
  reach.note({50, 150}, rights(1, all));
  EXPECT_THAT(reach.unreached_of({0, 200}), ElementsAre(Range{150, 200}));
  reach.note({0, 100}, rights(0, none));
  EXPECT_THAT(reach.unreached_of({0, 200}), ElementsAre(Range{0, 50}, Range{150, 200}));
}

TEST(Reach, WhatIsUnmappedNobodyReaches) {
  Reach reach;
  reach.note({0, 100}, rights(0, all));
  reach.note({0, 100}, rights(1, CU_MEM_ACCESS_FLAGS_PROT_READ));
  reach.forget({20, 30});
  EXPECT_THAT(reach.unreached_of({0, 100}), ElementsAre(Range{20, 30}));
}

}  // namespace
}  // namespace firebreak::guard
