// SPDX-License-Identifier: Apache-2.0
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <fstream>
#include <set>
#include <string>

#include "shared/abi/wire.h"

namespace firebreak::abi {
namespace {

std::set<std::string> words() {
  return {
#define FIREBREAK_EVENT(name, word) word,
#include "shared/abi/events.def"
#undef FIREBREAK_EVENT
  };
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
  std::set<std::string> seen;
#define FIREBREAK_EVENT(name, word)                     \
  EXPECT_EQ(to_string(EventKind::name), word);          \
  EXPECT_EQ(event_kind(word), EventKind::name) << word; \
  EXPECT_TRUE(seen.insert(word).second) << word;
#include "shared/abi/events.def"
#undef FIREBREAK_EVENT
  EXPECT_FALSE(seen.contains("other"));
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
