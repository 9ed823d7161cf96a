// SPDX-License-Identifier: Apache-2.0
/// Against dumps that are put together here, in the form that 40 dumps of an H100 have.
#include "agent/parking/park/core_dump_file.h"

#include <gtest/gtest.h>

#include <cstdint>
#include <cstring>
#include <random>
#include <string>
#include <vector>

#include "tests/doubles/base/test_seed.h"
#include "tests/doubles/park/test_dump.h"

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

// Three dumps of an H100 have the code of ten images each; the kernel's is one of them.
TEST(CoreDumpFile, NamesTheKernelWhoseCodeStandsAtTheProgramCounter) {
  constexpr std::uint64_t counter = 0x7f00dead0050;
  const auto kernel = [&](std::uint64_t begin, std::uint64_t bytes) {
    const auto found =
        read(dump_of({test::code("memset32", counter + 0x1000, 0x380), test::code("load_word", begin, bytes),
                      sms(6), warps(2, false), lanes(6)}));
    return found && *found ? (*found)->kernel : "nothing";
  };
  EXPECT_EQ(kernel(counter - 0x50, 0x100), "load_word");
  EXPECT_EQ(kernel(counter, 1), "load_word");
  EXPECT_EQ(kernel(counter - 0x100, 0x100), "");
  EXPECT_EQ(kernel(counter + 1, 0x100), "");
}

TEST(CoreDumpFile, OfATrapTheCounterIsThatOfTheOnlyWarpBesideIt) {
  const auto found =
      read(dump_of({test::code("check", 0x7f00dead0000, 0x100), sms(0), warps(2, true), {lanes(0)}}));
  ASSERT_TRUE(found && *found);
  EXPECT_EQ((*found)->type, "TRAP");
  // The first lane of the table has its counter at 0, where no code is.
  EXPECT_EQ((*found)->program_counter, 0U);
  EXPECT_EQ((*found)->kernel, "");
}

TEST(CoreDumpFile, AKernelsNameCanBePrinted) {
  const auto found = read(dump_of({test::code("a\033[2Jb\n", 0x7f00dead0000, 0x100), lanes(6)}));
  ASSERT_TRUE(found && *found);
  EXPECT_EQ((*found)->kernel, "a?[2Jb?");
}

// A reader would read each as long as the dump is.
TEST(CoreDumpFile, TablesThatOverlapAreNotRead) {
  std::vector<TestSection> tables(40, lanes(0));
  std::string dump = dump_of(tables);
  const std::size_t headers = dump.size() - std::size_t{42} * 64;
  for (std::size_t table = 1; table <= 40; ++table) {
    put(dump, headers + table * 64 + 24, std::uint64_t{0});
    put(dump, headers + table * 64 + 32, std::uint64_t{dump.size()});
    put(dump, headers + table * 64 + 56, std::uint64_t{dump.size()});
  }
  EXPECT_FALSE(read(dump));
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
  const std::string whole =
      dump_of({test::code("load_word", 0x7f00dead0000, 0x100), sms(6), warps(2, true), lanes(6)});
  int answered = 0;
  for (int round = 0; round < 20'000; ++round) {
    std::string broken = whole;
    for (int change = 0; change < 4; ++change) {
      // The file's header and its code's, the code's section headers, and its own.
      const std::size_t places[] = {random() % 64, 64 + random() % 600, broken.size() - 1 - random() % 384,
                                    random() % broken.size()};
      const std::size_t at = places[random() % std::size(places)];
      broken[at] = static_cast<char>(random());
    }
    broken.resize(broken.size() - (random() % 8 == 0 ? random() % broken.size() : 0));
    const auto found = read(broken);
    answered += found ? 1 : 0;
    for (const char c : found&&* found ? (*found)->kernel : "") ASSERT_TRUE(c > ' ' && c <= '~');
    (void)own_exception_in_beginning(std::as_bytes(std::span(broken)));
    (void)length_of_dump(std::as_bytes(std::span(broken)));
  }
  EXPECT_GT(answered, 0);
  EXPECT_LT(answered, 20'000);
}

std::span<const std::byte> first_of(const std::string& dump, std::size_t bytes) {
  return std::as_bytes(std::span(dump)).first(bytes);
}

// A process that stands still in its dump has written all but the last of it.
TEST(CoreDumpFile, TheBeginningNamesWhoseHeadersAreThere) {
  const std::string whole = dump_of(test::with_sms_after({sms(6), warps(2, false), lanes(6)}));
  const auto found = own_exception_in_beginning(first_of(whole, whole.size() - 4097));
  ASSERT_TRUE(found);
  EXPECT_EQ(found->type, "CUDBG_EXCEPTION_WARP_MISALIGNED_ADDRESS");
  EXPECT_EQ(found->program_counter, 0x7f00dead0050U);
  EXPECT_FALSE(found->sm) << "the names' header is the last one";
}

TEST(CoreDumpFile, TheBeginningNeverNamesWhomTheWholeDoesNot) {
  const std::string guilty = dump_of(test::with_sms_after({sms(6), warps(2, false), lanes(6)}));
  const std::string innocent = dump_of(test::with_sms_after({sms(6), warps(2, false), lanes(0)}));
  std::size_t named = 0;
  for (std::size_t bytes = 0; bytes <= guilty.size(); ++bytes)
    named += own_exception_in_beginning(first_of(guilty, bytes)) ? 1 : 0;
  EXPECT_GT(named, 4097u);
  EXPECT_LT(named, guilty.size() / 2);
  for (std::size_t bytes = 0; bytes <= innocent.size(); ++bytes)
    ASSERT_FALSE(own_exception_in_beginning(first_of(innocent, bytes))) << bytes;
}

TEST(CoreDumpFile, ItsBeginningSaysHowLongItIs) {
  const std::string whole = dump_of({sms(6), lanes(6)});
  EXPECT_EQ(length_of_dump(first_of(whole, 63)).bytes, 64u);
  EXPECT_FALSE(length_of_dump(first_of(whole, 63)).is_known);
  for (const std::size_t bytes : {std::size_t{64}, whole.size()}) {
    EXPECT_TRUE(length_of_dump(first_of(whole, bytes)).is_known);
    EXPECT_EQ(length_of_dump(first_of(whole, bytes)).bytes, whole.size());
  }
}

TEST(CoreDumpFile, WhereItsHeadersAreCountedApartItIsTheFirstOfThemThatSaysHowLong) {
  const std::string whole = dump_of({sms(6), lanes(6)}, true);
  const auto least = length_of_dump(first_of(whole, 64));
  EXPECT_FALSE(least.is_known);
  EXPECT_FALSE(length_of_dump(first_of(whole, least.bytes - 1)).is_known);
  const auto known = length_of_dump(first_of(whole, least.bytes));
  EXPECT_TRUE(known.is_known);
  EXPECT_EQ(known.bytes, whole.size());
}

TEST(CoreDumpFile, WhatIsNoDumpHasNoLength) {
  const std::string other(4096, 'x');
  EXPECT_FALSE(length_of_dump(first_of(other, other.size())).is_known);
  EXPECT_EQ(length_of_dump(first_of(other, other.size())).bytes, 0u);
  std::string endless = dump_of({lanes(6)});
  std::memset(endless.data() + 40, 0xff, 8);  // place where its headers begin
  EXPECT_FALSE(length_of_dump(first_of(endless, endless.size())).is_known);
}

}  // namespace
}  // namespace firebreak::park
