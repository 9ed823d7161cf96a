// SPDX-License-Identifier: Apache-2.0
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <fstream>
#include <set>
#include <string>
#include <vector>

#include "shared/abi/wire.h"

namespace firebreak::abi {
namespace {

struct Row {
  EventKind kind;
  std::string word;
};

const std::vector<Row>& rows() {
  static const std::vector<Row> all = {
#define FIREBREAK_EVENT(name, word) {EventKind::name, word},
#include "shared/abi/events.def"
#undef FIREBREAK_EVENT
  };
  return all;
}

std::set<std::string> words() {
  std::set<std::string> all;
  for (const Row& row : rows()) all.insert(row.word);
  return all;
}

/// The first column of the table under "What the agent tells".
std::set<std::string> documented() {
  std::ifstream file(FIREBREAK_EVENTS_DOCUMENT);
  std::set<std::string> all;
  bool is_there = false;
  for (std::string line; std::getline(file, line);) {
    if (line.starts_with("## ")) is_there = line == "## What the agent tells";
    if (is_there && line.starts_with("| `")) all.insert(line.substr(3, line.find('`', 3) - 3));
  }
  return all;
}

TEST(Events, EachIsDocumentedAndNoOther) { EXPECT_EQ(documented(), words()); }

TEST(Events, EachHasAWordOfItsOwnThatIsReadBack) {
  for (const auto& [kind, word] : rows()) {
    EXPECT_EQ(to_string(kind), word);
    EXPECT_EQ(event_kind(word), kind) << word;
  }
  EXPECT_EQ(words().size(), rows().size());
  EXPECT_FALSE(words().contains("other"));
}

// An agent that is newer may tell more.
TEST(Events, AWordThatNobodyKnowsIsNoError) {
  Event event;
  event.what = EventKind::Lost;
  std::string text = encode(event);
  text.replace(text.find("lost"), 4, "rust");
  const auto decoded = decode(text);
  ASSERT_TRUE(decoded);
  EXPECT_EQ(std::get<Event>(*decoded).what, EventKind::Other);
}

}  // namespace
}  // namespace firebreak::abi
