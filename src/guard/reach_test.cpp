// SPDX-License-Identifier: Apache-2.0
#include "guard/reach.h"

#include <gmock/gmock.h>

namespace firebreak::guard {
namespace {

using testing::ElementsAre;
using testing::IsEmpty;
using Range = os::AddressRange;

CUmemAccessDesc rights(int device, CUmemAccess_flags flags) {
  return {{CU_MEM_LOCATION_TYPE_DEVICE, device}, flags};
}
constexpr auto all = CU_MEM_ACCESS_FLAGS_PROT_READWRITE;
constexpr auto none = CU_MEM_ACCESS_FLAGS_PROT_NONE;

TEST(AddressSet, JoinsWhatTouchesAndCutsWhatIsTakenOut) {
  AddressSet set;
  set.add({10, 20});
  set.add({30, 40});
  EXPECT_THAT(set.missing_of({0, 50}), ElementsAre(Range{0, 10}, Range{20, 30}, Range{40, 50}));
  set.add({20, 30});
  EXPECT_THAT(set.missing_of({10, 40}), IsEmpty());
  set.add({5, 45});
  set.remove({12, 14});
  EXPECT_THAT(set.missing_of({0, 50}), ElementsAre(Range{0, 5}, Range{12, 14}, Range{45, 50}));
  set.remove({0, 13});
  EXPECT_THAT(set.missing_of({0, 20}), ElementsAre(Range{0, 14}));
}

TEST(AddressSet, IsEmptyAtFirst) {
  const AddressSet set;
  EXPECT_THAT(set.missing_of({1, 2}), ElementsAre(Range{1, 2}));
}

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
