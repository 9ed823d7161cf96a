// SPDX-License-Identifier: Apache-2.0
#include "ground/os/address_set.h"

#include <gmock/gmock.h>

namespace firebreak::os {
namespace {

using testing::ElementsAre;
using testing::IsEmpty;
using Range = AddressRange;

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

TEST(AddressSet, ShowsWhatItHas) {
  AddressSet set;
  set.add({20, 30});
  set.add({5, 10});
  set.add({10, 12});
  set.remove({22, 24});
  EXPECT_THAT(set.all(), ElementsAre(Range{5, 12}, Range{20, 22}, Range{24, 30}));
}

TEST(AddressSet, IsEmptyAtFirst) {
  const AddressSet set;
  EXPECT_THAT(set.missing_of({1, 2}), ElementsAre(Range{1, 2}));
}

}  // namespace
}  // namespace firebreak::os
