// SPDX-License-Identifier: Apache-2.0
/// Random programs in one process, to which something happens meanwhile. What they see is what they see
/// without any of this.
#pragma once

#include <gtest/gtest.h>

#include <cstdint>
#include <string>
#include <tuple>

#include "tests/doubles/base/test_seed.h"
#include "tests/virtual/spare_fixture.h"

namespace firebreak::test {

/// A test of these: which part of all programs, and whether they make contexts of their own.
using PartOfPrograms = std::tuple<int, bool>;

inline auto parts_of_programs() { return testing::Combine(testing::Range(0, 4), testing::Bool()); }

inline std::string name_of_part(const testing::TestParamInfo<PartOfPrograms>& each) {
  const auto& [part, with_contexts] = each.param;
  return std::to_string(part) + (with_contexts ? "WithContexts" : "");
}

/// `Fixture`: Spare, or one that is made of it.
template <class Fixture>
class RandomPrograms : public Fixture, public testing::WithParamInterface<PartOfPrograms> {
  static constexpr int programs = 1250;
  static constexpr int programs_at_once = 25;
  static constexpr int calls = 10;

 protected:
  // For a moment the contexts of three instances are there.
  RandomPrograms() { this->memory_mib_ = 512; }

  /// Ends with the first that sees something else than in the model.
  void expect_all_to_see_the_same(Client& program, Client& model, Page& page) {
    bool is_same = true;
    const std::uint64_t end = first_seed_ + programs;
    for (std::uint64_t seed = first_seed_; seed < end && is_same; seed += programs_at_once) {
      const auto right = model.ask(command(seed));
      const auto answer = program.ask(command(seed));
      EXPECT_EQ(right.result, CUDA_SUCCESS);
      EXPECT_EQ(answer.result, CUDA_SUCCESS);
      is_same = answer.value == right.value;
      EXPECT_TRUE(is_same) << "programs " << seed << " and on; " << page.reason();
    }
  }

  /// Of the first program of this part.
  const std::uint64_t first_seed_ =
      test_seed() + static_cast<std::uint64_t>(std::get<0>(GetParam())) * programs;

 private:
  static std::string command(std::uint64_t seed) {
    return "random " + std::to_string(seed) + " " + std::to_string(programs_at_once) + " " +
           std::to_string(calls) + (std::get<1>(GetParam()) ? " 1" : " 0");
  }
};

}  // namespace firebreak::test
