// SPDX-License-Identifier: Apache-2.0
/// Against dumps that are put together here, in the form that 40 dumps of an H100 have.
#include "park/core_dump_file.h"

#include <gtest/gtest.h>

#include <cstdint>
#include <cstring>
#include <random>
#include <string>
#include <vector>

#include "base/test_seed.h"
#include "park/test_dump.h"

namespace firebreak::park {
namespace {

using test::dump_of;
using test::lanes;
using test::put;
using test::sms;
using test::TestSection;
using test::warps;

Result<std::optional<fault::CoreDumpException>> read(const std::string& dump) {
  return own_exception_in(std::as_bytes(std::span(dump)));
}

TEST(CoreDumpFile, NamesTheLaneWithAnException) {
  const auto found = read(dump_of({sms(6), warps(2, false), lanes(6)}));
  ASSERT_TRUE(found && *found);
  EXPECT_EQ((*found)->type, "CUDBG_EXCEPTION_WARP_MISALIGNED_ADDRESS");
  EXPECT_EQ((*found)->sm, 3U);
  EXPECT_EQ((*found)->warp, 2U);
  EXPECT_EQ((*found)->program_counter, 0x7f00dead0050U);
}

TEST(CoreDumpFile, NamesATrapByItsBrokenWarp) {
  const auto found = read(dump_of({sms(0), warps(5, true), lanes(0)}));
  ASSERT_TRUE(found && *found);
  EXPECT_EQ((*found)->type, "TRAP");
  EXPECT_EQ((*found)->warp, 5U);
}

/// The exception of an SM stands in everybody's dump.
TEST(CoreDumpFile, AnSmWithAnExceptionIsNobodysOwn) {
  const auto idle = read(dump_of({sms(6)}));
  ASSERT_TRUE(idle);
  EXPECT_FALSE(*idle);
  const auto busy = read(dump_of({sms(6), warps(0, false), lanes(0)}));
  ASSERT_TRUE(busy);
  EXPECT_FALSE(*busy);
}

TEST(CoreDumpFile, AnExceptionCountsMoreThanABrokenWarp) {
  const auto found = read(dump_of({warps(5, true), lanes(4)}));
  ASSERT_TRUE(found && *found);
  EXPECT_EQ((*found)->type, "CUDBG_EXCEPTION_WARP_ILLEGAL_INSTRUCTION");
}

TEST(CoreDumpFile, MoreSectionsThan16BitsCountAreRead) {
  const auto found = read(dump_of({sms(6), lanes(6)}, true));
  ASSERT_TRUE(found && *found);
  EXPECT_EQ((*found)->sm, 3U);
}

TEST(CoreDumpFile, ANumberThatNobodyKnowsIsAnExceptionToo) {
  const auto found = read(dump_of({lanes(4711)}));
  ASSERT_TRUE(found && *found);
  EXPECT_EQ((*found)->type, "CUDBG_EXCEPTION_UNKNOWN");
}

TEST(CoreDumpFile, OneThatIsCutShortSaysNothing) {
  const std::string whole = dump_of({sms(6), warps(2, false), lanes(6)});
  for (std::size_t size = 0; size < whole.size(); size += 7)
    EXPECT_FALSE(read(whole.substr(0, size))) << size << " bytes";
}

TEST(CoreDumpFile, AnotherFileIsNone) {
  std::string other = dump_of({lanes(6)});
  put(other, 18, std::uint16_t{62});
  EXPECT_FALSE(read(other));
  EXPECT_FALSE(read(std::string(100'000, 'x')));
  EXPECT_FALSE(read(""));
}

TEST(CoreDumpFile, ATableOfEntriesThatAreTooSmallIsNone) {
  TestSection small = lanes(6);
  small.entry_bytes = 8;
  EXPECT_FALSE(read(dump_of({small})));
  small.entry_bytes = 0;
  EXPECT_FALSE(read(dump_of({small})));
  small.entry_bytes = ~std::uint64_t{0};
  const auto found = read(dump_of({small}));
  EXPECT_TRUE(!found || !*found);
}

/// Whatever bytes it is of: an answer, and nothing outside of it is read (address sanitizer).
TEST(CoreDumpFile, AnyBytesAreAnswered) {
  std::mt19937_64 random(test_seed());
  const std::string whole = dump_of({sms(6), warps(2, true), lanes(6)});
  int answered = 0;
  for (int round = 0; round < 20'000; ++round) {
    std::string broken = whole;
    for (int change = 0; change < 4; ++change) {
      const bool in_headers = random() % 2 == 0;
      const std::size_t at = in_headers ? broken.size() - 1 - random() % 320 : random() % 64;
      broken[at] = static_cast<char>(random());
    }
    broken.resize(broken.size() - (random() % 8 == 0 ? random() % broken.size() : 0));
    answered += read(broken) ? 1 : 0;
  }
  EXPECT_GT(answered, 0);
  EXPECT_LT(answered, 20'000);
}

}  // namespace
}  // namespace firebreak::park
