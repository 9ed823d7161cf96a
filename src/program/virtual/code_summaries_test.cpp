// SPDX-License-Identifier: Apache-2.0
// What is known of kernels before a fault, and what is not read after it.
#include "program/virtual/code_summaries.h"

#include <gtest/gtest.h>

#include <functional>

namespace firebreak::virtual_driver {
namespace {

constexpr fatbin::TargetGpu gpu{9, 0, false};

std::shared_ptr<CodeImage> image_of(const std::string& more = "") {
  return CodeImage::of_content(
      ".version 8.0\n.target sm_80\n.address_size 64\n.visible .entry fill(.param .u64 a)\n"
      "{ .reg .b64 %rd<3>; ld.param.u64 %rd1, [a]; st.global.u32 [%rd1], 1; ret; }\n" +
      more);
}

TEST(CodeSummaries, AreMadeOnceCodeHasComeAndNeverWhenTheyAreAskedFor) {
  CodeSummaries summaries;
  const auto image = image_of();
  const char* why = nullptr;
  EXPECT_EQ(summaries.find(image.get(), "fill", why), nullptr);
  EXPECT_STREQ(why, "its code has just come, and has not been read");
  EXPECT_EQ(summaries.find(image.get(), "fill", why), nullptr);
  EXPECT_TRUE(summaries.read_new({image}, gpu));
  const auto found = summaries.find(image.get(), "fill", why);
  ASSERT_NE(found, nullptr);
  EXPECT_EQ(found->groups.size(), 1U);
  EXPECT_EQ(found->values, nullptr);  // nothing large is kept
  EXPECT_EQ(summaries.find(image.get(), "other", why), nullptr);
  EXPECT_STREQ(why, "its code is not known as PTX");
}

TEST(CodeSummaries, LargeTextsAreNotReadAndManyAreReadInTurns) {
  CodeSummaries summaries;
  const char* why = nullptr;
  const auto large = image_of("//" + std::string(std::size_t{9} << 20, 'x') + "\n");
  EXPECT_TRUE(summaries.read_new({large}, gpu));
  EXPECT_EQ(summaries.find(large.get(), "fill", why), nullptr);
  EXPECT_STREQ(why, "its code is too large to be read");
  const std::string long_comment = "//" + std::string(std::size_t{2} << 20, 'x') + "\n";
  const auto first = image_of(long_comment);
  const auto second = image_of(long_comment);
  EXPECT_FALSE(summaries.read_new({large, first, second}, gpu));
  EXPECT_NE(summaries.find(first.get(), "fill", why), nullptr);
  EXPECT_EQ(summaries.find(second.get(), "fill", why), nullptr);
  EXPECT_TRUE(summaries.read_new({large, first, second}, gpu));
  EXPECT_NE(summaries.find(second.get(), "fill", why), nullptr);
}

// The words, the functions, the names and the work of a text have limits, too.
TEST(CodeSummaries, WhatTakesMuchMemoryOrWorkIsNotRead) {
  const auto is_read = [](const std::string& more) {
    CodeSummaries summaries;
    const auto image = image_of(more);
    const char* why = nullptr;
    EXPECT_TRUE(summaries.read_new({image}, gpu));
    const bool is_found = summaries.find(image.get(), "last", why) != nullptr;
    EXPECT_TRUE(is_found || std::string(why) == "its code is too large to be read") << why;
    return is_found;
  };
  const auto repeated = [](int count, const std::function<std::string(const std::string&)>& part) {
    std::string text;
    for (int i = 0; i < count; ++i) text += part(std::to_string(i));
    return text;
  };
  const std::string last = ".entry last() { ret; }\n";
  const auto numbers = [&](int count) {
    return ".global .b8 x[" + std::to_string(count) + "] = {1" +
           repeated(count - 1, [](auto&) { return ",1"; }) + "};\n" + last;
  };
  EXPECT_TRUE(is_read(numbers(1'000)));
  EXPECT_FALSE(is_read(numbers(1'400'000)));
  const auto functions = [&](int count) {
    return repeated(count, [](auto& i) { return ".func f" + i + "();\n"; }) + last;
  };
  EXPECT_TRUE(is_read(functions(1'000)));
  EXPECT_FALSE(is_read(functions(20'000)));
  const auto variables = [&](int count) {
    return repeated(count, [](auto& i) { return ".global .b8 v" + i + ";\n"; }) + functions(1'000);
  };
  EXPECT_TRUE(is_read(variables(1'000)));
  EXPECT_FALSE(is_read(variables(5'000)));
  // Each of these costs all the steps that a kernel may.
  const auto kernels = [&](int count) {
    return repeated(count,
                    [&](auto& i) {
                      return ".entry k" + i +
                             "(.param .u64 a) { .reg .b64 %rd<30100>; .reg .pred %p1;\nH:\n" +
                             repeated(30'000,
                                      [](auto& k) {
                                        return "mov.b64 %rd" + k + ", %rd" +
                                               std::to_string(std::stoi(k) + 1) + ";\n";
                                      }) +
                             "ld.param.u64 %rd30000, [a]; @%p1 bra H; st.global.u32 [%rd0], 1; ret; }\n";
                    }) +
           last;
  };
  EXPECT_TRUE(is_read(kernels(1)));
  EXPECT_FALSE(is_read(kernels(3)));
}

TEST(CodeSummaries, WhatIsGoneIsNotTakenForWhatHasCome) {
  CodeSummaries summaries;
  const char* why = nullptr;
  auto image = image_of();
  const CodeImage* const where = image.get();
  EXPECT_TRUE(summaries.read_new({image}, gpu));
  image.reset();
  EXPECT_EQ(summaries.find(where, "fill", why), nullptr);
}

}  // namespace
}  // namespace firebreak::virtual_driver
