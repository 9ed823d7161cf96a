// SPDX-License-Identifier: Apache-2.0
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "tools/tidy/testing.h"

namespace firebreak::tidy {
namespace {

using testing::ElementsAre;
using testing::IsEmpty;

std::string words(int count, const char* between = " ") {
  std::string text;
  for (int number = 0; number < count; ++number) text += std::string("word") + between;
  return text;
}

std::vector<std::string> check(const std::vector<std::pair<std::string, std::string>>& files) {
  return places(check_document_words(tree_of(files)));
}

TEST(DocumentWords, AsManyAsThereMayBePassOneMoreFails) {
  EXPECT_THAT(check({{"ARCHITECTURE.md", words(1500)}, {"docs/how/a.md", words(1500)}}), IsEmpty());
  EXPECT_THAT(check({{"ARCHITECTURE.md", words(1501)}}), ElementsAre("ARCHITECTURE.md:1"));
  EXPECT_THAT(check({{"docs/how/a.md", words(1501)}, {"docs/use/a.md", words(1501)}}),
              ElementsAre("docs/how/a.md:1"));
}

TEST(DocumentWords, TheFirstPagesCountTogether) {
  EXPECT_THAT(check({{"GLOSSARY.md", words(3000)}, {"HACKING.md", words(3500)}}), IsEmpty());
  EXPECT_THAT(check({{"GLOSSARY.md", words(3000)}, {"HACKING.md", words(3501)}}), ElementsAre("README.md:1"));
}

TEST(DocumentWords, AllDocumentsCountTogetherWhereverTheyAre) {
  std::vector<std::pair<std::string, std::string>> files;
  for (int number = 0; number < 40; ++number)
    files.emplace_back("lab/" + std::to_string(number) + ".md", words(1000));
  EXPECT_THAT(check(files), ElementsAre("README.md:1"));
  for (auto& [path, text] : files) path += ".txt";
  EXPECT_THAT(check(files), IsEmpty());
}

TEST(DocumentWords, ReadmeHasNinetyLines) {
  EXPECT_THAT(check({{"README.md", words(90, "\n")}}), IsEmpty());
  EXPECT_THAT(check({{"README.md", words(91, "\n")}}), ElementsAre("README.md:1"));
  EXPECT_THAT(check({{"lab/README.md", words(91, "\n")}}), IsEmpty());
}

TEST(DocumentWords, ATablesBarsCount) {
  EXPECT_THAT(check({{"ARCHITECTURE.md", "| a | b |\n" + words(1495)}}), IsEmpty());
  EXPECT_THAT(check({{"ARCHITECTURE.md", "| a | b |\n" + words(1496)}}), ElementsAre("ARCHITECTURE.md:1"));
}

}  // namespace
}  // namespace firebreak::tidy
