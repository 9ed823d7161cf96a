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

namespace firebreak::park {
namespace {

constexpr std::uint32_t sm_table = 11;
constexpr std::uint32_t warp_table = 14;
constexpr std::uint32_t lane_table = 15;

struct TestSection {
  std::string name;
  std::uint32_t type = 0;  ///< beyond SHT_LOUSER
  std::uint64_t entry_bytes = 0;
  std::string content = {};
};

template <class Number>
void put(std::string& into, std::size_t at, Number number) {
  if (into.size() < at + sizeof(number)) into.resize(at + sizeof(number));
  std::memcpy(into.data() + at, &number, sizeof(number));
}

/// As the driver writes it: the section headers come last. `counts_apart`: as where 16 bits do not count them.
std::string dump_of(const std::vector<TestSection>& sections, bool counts_apart = false) {
  std::string file(64, '\0');
  std::string names(1, '\0');
  std::string headers(64, '\0');
  const auto add = [&](const TestSection& section, const std::string& content) {
    std::string header(64, '\0');
    put(header, 0, static_cast<std::uint32_t>(names.size()));
    put(header, 4, section.type == 0 ? 3U : 0x80000000U + section.type);
    put(header, 24, std::uint64_t{file.size()});
    names += section.name + '\0';
    put(header, 32, std::uint64_t{section.type == 0 ? names.size() : content.size()});
    put(header, 56, section.entry_bytes);
    headers += header;
    file += section.type == 0 ? names : content;
  };
  for (const TestSection& section : sections) add(section, section.content);
  add({".shstrtab"}, {});
  const std::uint16_t count = static_cast<std::uint16_t>(headers.size() / 64);
  std::memcpy(file.data(), "\177ELF\2\1\1\63\7", 9);
  put(file, 16, std::uint16_t{4});
  put(file, 18, std::uint16_t{190});
  put(file, 40, std::uint64_t{file.size()});
  put(file, 58, std::uint16_t{64});
  put(file, 60, counts_apart ? std::uint16_t{0} : count);
  put(file, 62, counts_apart ? std::uint16_t{0xffff} : static_cast<std::uint16_t>(count - 1));
  if (counts_apart) {
    put(headers, 32, std::uint64_t{count});
    put(headers, 40, std::uint32_t{count} - 1);
  }
  return file + headers;
}

/// What stands in the dumps of all clients of the domain.
TestSection sms(std::uint32_t exception) {
  std::string table(132 * 48, '\0');
  put(table, 128 * 48, std::uint32_t{128});
  put(table, 128 * 48 + 8, exception);
  put(table, 128 * 48 + 12, 1U);
  return {".cudbg.smtbl.dev0", sm_table, 48, table};
}

TestSection warps(std::uint32_t number, bool is_broken) {
  std::string table(64, '\0');
  put(table, 8, number);
  put(table, 12, 1U);
  put(table, 20, is_broken ? 1U : 0U);
  return {".cudbg.wptbl.dev0.sm3.cta0", warp_table, 64, table};
}

TestSection lanes(std::uint32_t exception) {
  std::string table(2 * 56, '\0');
  put(table, 56, std::uint64_t{0x7f00dead0050});
  put(table, 56 + 32, exception);
  return {".cudbg.lntbl.dev0.sm3.cta0.wp2", lane_table, 56, table};
}

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
