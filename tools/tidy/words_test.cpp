// SPDX-License-Identifier: Apache-2.0
#include "tools/tidy/words.h"

#include <gtest/gtest.h>

namespace firebreak::tidy {
namespace {

std::size_t calls(std::string_view code, std::string_view companion = {}) {
  return find_calls(code, companion, {"open", "accept"}).size();
}

TEST(Words, CallsWithAndWithoutTheGlobalScope) {
  EXPECT_EQ(calls("int fd = open(path, 0);"), 1u);
  EXPECT_EQ(calls("return ::open(path, 0);"), 1u);
  EXPECT_EQ(calls("return open(path, 0);"), 1u);
  EXPECT_EQ(calls("if (ready && open (path, 0) < 0) {}"), 1u);
}

TEST(Words, MembersAndOtherScopesAreNotCalls) {
  EXPECT_EQ(calls("kernel.open(path); kernel->open(path); this->open(path);"), 0u);
  EXPECT_EQ(calls("Result<Fd> LinuxKernel::open(const std::string& path) {"), 0u);
  EXPECT_EQ(calls("Table<int>::open(1);"), 0u);
}

TEST(Words, DeclarationsAndLongerNamesAreNotCalls) {
  EXPECT_EQ(calls("virtual Result<Fd> open(int); Fd& open(char); int reopen(int); open_file(1); opened(2);"),
            0u);
}

TEST(Words, AFilesOwnFunctionIsItsOwn) {
  EXPECT_EQ(calls("bool accept(Token token); void f() { accept(Comma); }"), 0u);
  EXPECT_EQ(calls("void f() { accept(Comma); }", "class P { bool accept(Token token); };"), 0u);
  EXPECT_EQ(calls("void f() { ::accept(fd); }", "class P { bool accept(Token token); };"), 1u);
  EXPECT_EQ(calls("void f() { accept(fd); }", "class P { void take(); };"), 1u);
}

TEST(Words, WordsCarryTheirOffsets) {
  const auto words = words_of("a1 + _b(c)");
  ASSERT_EQ(words.size(), 3u);
  EXPECT_EQ(words[1].text, "_b");
  EXPECT_EQ(words[1].offset, 5u);
}

}  // namespace
}  // namespace firebreak::tidy
