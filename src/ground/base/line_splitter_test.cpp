// SPDX-License-Identifier: Apache-2.0
#include "ground/base/line_splitter.h"

#include <gmock/gmock.h>

#include <vector>

namespace firebreak {
namespace {

using testing::ElementsAre;
using testing::IsEmpty;

class LineSplitterTest : public testing::Test {
 protected:
  void take(std::string_view piece) {
    splitter_.take(piece, [this](std::string_view line) { lines_.emplace_back(line); });
  }

  LineSplitter splitter_;
  std::vector<std::string> lines_;
};

TEST_F(LineSplitterTest, PiecesMakeLines) {
  take("one");
  EXPECT_THAT(lines_, IsEmpty());
  take(" and\n\ntwo\nth");
  EXPECT_THAT(lines_, ElementsAre("one and", "", "two"));
  take("ree\n");
  EXPECT_THAT(lines_, ElementsAre("one and", "", "two", "three"));
}

TEST_F(LineSplitterTest, AnotherTextDoesNotGoOnWithTheLine) {
  take("begun");
  splitter_.reset();
  take("new\n");
  EXPECT_THAT(lines_, ElementsAre("new"));
}

TEST_F(LineSplitterTest, TheEndOfALineIsPassedOver) {
  take("begun");
  splitter_.skip_line();
  take("the end of");
  take(" another\nnew\n");
  splitter_.skip_line();
  splitter_.reset();
  take("whole\n");
  EXPECT_THAT(lines_, ElementsAre("new", "whole"));
}

TEST_F(LineSplitterTest, ATextWithoutLineEndsIsPassedOver) {
  take(std::string(LineSplitter::longest_line + 1, 'x'));
  take("end\nnext\n");
  EXPECT_THAT(lines_, ElementsAre("end", "next"));
}

}  // namespace
}  // namespace firebreak
