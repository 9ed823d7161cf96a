// SPDX-License-Identifier: Apache-2.0
#include "inject/schedule.h"

#include <gmock/gmock.h>

#include <set>
#include <tuple>

#include "inject/catalogue.h"

namespace firebreak::inject {
namespace {

using std::chrono::milliseconds;
using ::testing::HasSubstr;

std::vector<ScheduleEntry> parsed(std::string_view json) {
  auto schedule = parse_schedule(json);
  EXPECT_TRUE(schedule) << to_string(schedule.error());
  return schedule ? *schedule : std::vector<ScheduleEntry>();
}

using Row = std::tuple<std::int64_t, std::string_view, std::string>;
std::vector<Row> planned(std::string_view json, std::uint64_t seed) {
  std::vector<Row> rows;
  for (const auto& fault : plan(parsed(json), seed))
    rows.emplace_back(fault.at.count(), fault.kind->name, fault.into);
  return rows;
}

constexpr std::string_view random_schedule = R"({"faults": [
  {"kinds": ["trap", "null-load", "misaligned-load"], "to_ms": 1000, "times": 50},
  {"class": "sm", "from_ms": 300, "to_ms": 400, "times": 20, "into": "decode"}]})";

TEST(Schedule, EntrySaysWhatWhenAndWhere) {
  const auto schedule = parsed(R"({"faults": [{"kind": "trap", "at_ms": 70, "into": "decode", "times": 2},
                                              {"class": "device", "from_ms": 5, "to_ms": 9}]})");
  ASSERT_EQ(schedule.size(), 2U);
  EXPECT_THAT(schedule[0].kinds, ::testing::ElementsAre(find("trap")));
  EXPECT_EQ(schedule[0].earliest, milliseconds(70));
  EXPECT_EQ(schedule[0].latest, milliseconds(70));
  EXPECT_EQ(schedule[0].into, "decode");
  EXPECT_EQ(schedule[0].times, 2U);
  EXPECT_THAT(schedule[1].kinds, ::testing::Contains(find("double-bit-ecc")));
  EXPECT_THAT(schedule[1].kinds, ::testing::Not(::testing::Contains(find("trap"))));
  EXPECT_EQ(schedule[1].earliest, milliseconds(5));
  EXPECT_EQ(schedule[1].latest, milliseconds(9));
  EXPECT_EQ(schedule[1].into, "");
}

TEST(Schedule, TheSameSeedIsTheSamePlanAndAnotherIsAnother) {
  EXPECT_EQ(planned(random_schedule, 7), planned(random_schedule, 7));
  EXPECT_NE(planned(random_schedule, 7), planned(random_schedule, 8));
}

TEST(Schedule, APlanIsTheSameOnEveryMachine) {
  const auto rows =
      planned(R"({"faults": [{"kinds": ["trap", "null-load"], "to_ms": 1000, "times": 3}]})", 4);
  EXPECT_THAT(rows, ::testing::ElementsAre(Row{354, "trap", ""}, Row{808, "null-load", ""},
                                           Row{904, "null-load", ""}));
}

TEST(Schedule, APlanIsInOrderAndWithinItsWindows) {
  std::set<std::string_view> kinds;
  std::int64_t before = 0;
  for (const auto& [at, kind, into] : planned(random_schedule, 3)) {
    EXPECT_GE(at, before);
    before = at;
    if (into.empty()) {
      EXPECT_LE(at, 1000);
      kinds.insert(kind);
    } else {
      EXPECT_TRUE(at >= 300 && at <= 400) << at;
      EXPECT_EQ(find(kind)->fault_class, fault::FaultClass::Sm);
    }
  }
  EXPECT_EQ(kinds.size(), 3U);
}

TEST(Schedule, EventsOfOneTimeKeepTheOrderOfTheFile) {
  EXPECT_THAT(planned(R"({"faults": [{"kind": "trap", "at_ms": 5}, {"kind": "null-load", "at_ms": 5}]})", 1),
              ::testing::ElementsAre(Row{5, "trap", ""}, Row{5, "null-load", ""}));
}

struct Mistake {
  const char* json;
  const char* said;
};
class ScheduleMistake : public ::testing::TestWithParam<Mistake> {};
INSTANTIATE_TEST_SUITE_P(
    Each, ScheduleMistake,
    ::testing::Values(
        Mistake{"{", "no JSON"}, Mistake{"[]", "not {"}, Mistake{R"({"faults": 1})", "not {"},
        Mistake{R"({"faults": [], "seed": 1})", "not {"}, Mistake{R"({"faults": [1]})", "no object"},
        Mistake{R"({"faults": [{"at_ms": 1}]})", "one of"},
        Mistake{R"({"faults": [{"kind": "trap", "class": "sm", "at_ms": 1}]})", "one of"},
        Mistake{R"({"faults": [{"kind": "tarp", "at_ms": 1}]})", "no kind 'tarp'"},
        Mistake{R"({"faults": [{"class": "cpu", "at_ms": 1}]})", "no class 'cpu'"},
        Mistake{R"({"faults": [{"kind": "a\nb", "at_ms": 1}]})", "no kind 'a?b'"},
        Mistake{R"({"faults": [{"kinds": [], "at_ms": 1}]})", "empty"},
        Mistake{R"({"faults": [{"kinds": [1], "at_ms": 1}]})", "no list"},
        Mistake{R"({"faults": [{"kind": "trap"}]})", "either"},
        Mistake{R"({"faults": [{"kind": "trap", "at_ms": 1, "to_ms": 2}]})", "either"},
        Mistake{R"({"faults": [{"kind": "trap", "at_ms": 1, "from_ms": 1}]})", "goes with"},
        Mistake{R"({"faults": [{"kind": "trap", "from_ms": 3, "to_ms": 2}]})", "before"},
        Mistake{R"({"faults": [{"kind": "trap", "at_ms": -1}]})", "whole number"},
        Mistake{R"({"faults": [{"kind": "trap", "at_ms": 1.5}]})", "whole number"},
        Mistake{R"({"faults": [{"kind": "trap", "at_ms": 18446744073709551615}]})", "whole number"},
        Mistake{R"({"faults": [{"kind": "trap", "at_ms": 1, "times": 0}]})", "\"times\""},
        Mistake{R"({"faults": [{"kind": "trap", "at_ms": 1, "into": 5}]})", "no string"},
        Mistake{R"({"faults": [{"kind": "trap", "at_ms": 1, "intro": "a"}]})", "\"intro\" means nothing"}));

TEST_P(ScheduleMistake, IsSaid) {
  const auto schedule = parse_schedule(GetParam().json);
  ASSERT_FALSE(schedule);
  EXPECT_EQ(schedule.error().code, ErrorCode::InvalidArgument);
  EXPECT_THAT(schedule.error().message, HasSubstr(GetParam().said));
}

TEST(Schedule, AMistakeSaysInWhichEntry) {
  const auto schedule = parse_schedule(R"({"faults": [{"kind": "trap", "at_ms": 1}, {"kind": "trap"}]})");
  ASSERT_FALSE(schedule);
  EXPECT_THAT(schedule.error().message, HasSubstr("fault 2"));
}

}  // namespace
}  // namespace firebreak::inject
