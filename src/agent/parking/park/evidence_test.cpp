// SPDX-License-Identifier: Apache-2.0
#include "agent/parking/park/evidence.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <random>

#include "tests/doubles/base/test_seed.h"

namespace firebreak::park {
namespace {

using testing::HasSubstr;

Evidence evidence() {
  Evidence made;
  made.id = "20261124T183512Z-rogue-77";
  made.when = "2026-11-24T18:35:12Z";
  made.name = "rogue-77";
  made.domain = "a";
  made.pid = 77;
  made.exception = {"CUDBG_EXCEPTION_WARP_MISALIGNED_ADDRESS", {}, 1, 2, 0x7fe33b7aec50, "load_word"};
  made.timeline = {{0, "dump began: the domain is halted"}, {58.25, "rogue-77 is named"}};
  made.affected = {{"one", "ended before its domain fell"}};
  made.fault = "1mjnajx";
  made.dump_bytes = 250'169;
  return made;
}

TEST(Evidence, IsTheSameAfterItsDocument) {
  const auto read = evidence_from(to_json(evidence()));
  ASSERT_TRUE(read) << to_string(read.error());
  EXPECT_EQ(to_json(*read), to_json(evidence()));
  EXPECT_EQ(read->exception.program_counter, 0x7fe33b7aec50U);
}

TEST(Evidence, TellsAPersonKernelCounterExceptionTimelineAndWhoWasThere) {
  const std::string text = to_text(evidence(), "/run/x.cudacore");
  for (const char* words :
       {"CUDBG_EXCEPTION_WARP_MISALIGNED_ADDRESS", "kernel     load_word", "PC 0x7fe33b7aec50, SM 1, warp 2",
        "/run/x.cudacore (250169 bytes", "58.2 ms  rogue-77 is named", "one: ended", "in domain a",
        "fault      1mjnajx", "when       2026-11-24T18:35:12Z\n"})
    EXPECT_THAT(text, HasSubstr(words));
}

TEST(Evidence, WhatIsNotKnownIsSaidToBeSo) {
  Evidence little;
  little.id = "x";
  const std::string text = to_text(little, "");
  for (const char* words :
       {"kernel     not told", "where      not told", "core dump  none", "is not over yet"})
    EXPECT_THAT(text, HasSubstr(words));
}

TEST(Evidence, AnIdIsNoPath) {
  EXPECT_TRUE(is_evidence_id("20261124T183512Z-rogue-77"));
  for (const char* other : {"", ".", "..", "../x", "a/b", ".hidden", "a b", "a\n"})
    EXPECT_FALSE(is_evidence_id(other));
  EXPECT_FALSE(is_evidence_id(std::string(129, 'a')));
}

TEST(Evidence, WhatItsOwnerWroteDoesNothingToATerminal) {
  Evidence made = evidence();
  made.exception.kernel = "\033]0;x\007\n\xc3\xa4";
  made.affected[0].name = "\033[2J";
  made.timeline[0].what = std::string("\0\r", 2);
  const auto read = evidence_from(to_json(made));
  ASSERT_TRUE(read);
  for (const char c : to_text(*read, ""))
    ASSERT_TRUE(c == '\n' || (c >= ' ' && c <= '~')) << static_cast<int>(c);
}

TEST(Evidence, AnyTextIsAnswered) {
  std::mt19937_64 random(test_seed());
  const std::string whole = to_json(evidence());
  int answered = 0;
  for (int round = 0; round < 5'000; ++round) {
    std::string broken = whole;
    for (std::size_t change = random() % 4; change-- > 0;)
      broken[random() % broken.size()] = static_cast<char>(random());
    if (random() % 8 == 0) broken.resize(random() % broken.size());
    const auto read = evidence_from(broken);
    answered += read ? 1 : 0;
    for (const char c : read ? to_text(*read, "") : "") ASSERT_TRUE(c == '\n' || (c >= ' ' && c <= '~'));
  }
  EXPECT_GT(answered, 0);
  EXPECT_LT(answered, 5'000);
  for (const char* text : {"", "[]", "7", "{}", R"({"id": "x", "culprit": 7})", R"({"id": "../x"})",
                           R"({"id": "x", "exception": []})"})
    EXPECT_FALSE(evidence_from(text)) << text;
  EXPECT_TRUE(evidence_from(R"({"id": "x", "timeline": 7, "affected": [7], "dump_bytes": -1})"));
}

}  // namespace
}  // namespace firebreak::park
