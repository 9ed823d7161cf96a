// SPDX-License-Identifier: Apache-2.0
#include "os/descriptors.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <map>

#include "os/fake_kernel.h"
#include "os/memory.h"

namespace firebreak::os {
namespace {

constexpr pid_t somebody = 42;

class VisitDescriptors : public testing::Test {
 protected:
  VisitDescriptors() {
    kernel_.add_process(somebody);
    for (const auto& [number, target] :
         {std::pair(3, "/dev/null"), {7, "/dev/nvidia-uvm"}, {12, "pipe:[1]"}}) {
      kernel_.give_descriptor(somebody, number, target, create_memory_file("any", 1).value());
    }
  }
  FakeKernel kernel_;
};

TEST_F(VisitDescriptors, ShowsNumbersAndTargets) {
  std::map<int, std::string> seen;
  EXPECT_TRUE(visit_descriptors(kernel_, somebody, [&](int number, const std::string& target) {
    seen.emplace(number, target);
    return true;
  }));
  EXPECT_THAT(seen, testing::ElementsAre(testing::Pair(3, "/dev/null"), testing::Pair(7, "/dev/nvidia-uvm"),
                                         testing::Pair(12, "pipe:[1]")));
}

TEST_F(VisitDescriptors, StopsWhenEnoughWasSeen) {
  int seen = 0;
  EXPECT_TRUE(visit_descriptors(kernel_, somebody, [&](int, const std::string&) { return ++seen < 2; }));
  EXPECT_EQ(seen, 2);
}

TEST_F(VisitDescriptors, OfNobodyFails) {
  const Status visited = visit_descriptors(kernel_, 43, [](int, const std::string&) { return true; });
  ASSERT_FALSE(visited);
  EXPECT_EQ(visited.error().code, ErrorCode::NotFound);
}

}  // namespace
}  // namespace firebreak::os
