// SPDX-License-Identifier: Apache-2.0
#include "characterize/page.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <nlohmann/json.hpp>
#include <regex>
#include <set>

#include "characterize/example_results.h"

namespace firebreak::characterize {
namespace {

constexpr std::string_view data_begin = "id=\"results\">";

/// The text between the data element's marks.
std::string embedded(const std::string& page) {
  const auto at = page.find(data_begin);
  if (at == std::string::npos) return "no data element";
  const auto from = at + data_begin.size();
  return page.substr(from, page.find("</script>", from) - from);
}

int count(const std::string& text, const std::string& what) {
  int found = 0;
  for (auto at = text.find(what); at != std::string::npos; at = text.find(what, at + 1)) ++found;
  return found;
}

TEST(Page, HoldsTheSummaryAndTheTypicalRuns) {
  const auto data = nlohmann::json::parse(embedded(to_html(example::results({"a", "b"}, 3), nullptr)));
  EXPECT_EQ(data.at("summary").at("kinds").size(), 2U);
  EXPECT_EQ(data["summary"]["kinds"].at(0).at("signal_ms").at("xid").at("values").size(), 3U);
  EXPECT_EQ(data.at("lives").at("mmu_replayable").at("kind"), "a");
  EXPECT_EQ(data.at("machine").at("gpu"), "Some GPU");
  EXPECT_TRUE(data.at("against").is_null());
}

TEST(Page, HoldsTheComparisonWhereThereIsOne) {
  const Results results = example::results({"a"}, 3);
  Results after = results;
  after.runs[0].participants["co_client"] = {};
  const Comparison comparison = compare(results, after);
  const auto data = nlohmann::json::parse(embedded(to_html(after, &comparison)));
  EXPECT_EQ(data.at("against").at("changes").at(0).at("what"), "co_client");
  EXPECT_FALSE(data.at("against").at("medians").empty());
}

TEST(Page, IsThereWhereTheBuildHadWhatItIsMadeWith) {
  EXPECT_EQ(page_is_there().has_value(), FIREBREAK_HAS_PAGE == 1);
  EXPECT_EQ(to_html(example::results({"a"}, 1), nullptr).find("createElement") != std::string::npos,
            FIREBREAK_HAS_PAGE == 1);
}

TEST(Page, CannotBeEndedByWhatItHolds) {
  Results results = example::results({"a"}, 1);
  const std::string evil = "</script><script>alert(1)</script><!--";
  results.machine.gpu = evil;
  const std::string page = to_html(results, nullptr);
  EXPECT_EQ(page.find("alert(1)<"), std::string::npos);
  EXPECT_EQ(count(page, "</script>"), 2) << "the data's end and the program's";
  EXPECT_EQ(nlohmann::json::parse(embedded(page)).at("machine").at("gpu"), evil);
}

/// Names of XML namespaces are never fetched, nor is what stands in a licence's text or a message.
TEST(Page, LoadsNothing) {
  const std::string page = to_html(example::results({"a"}, 1), nullptr);
  for (const char* loads : {"<link rel=\"stylesheet\"", "<script src", "<img", "<iframe", "@import", "url(h",
                            "fetch(", "XMLHttpRequest", "WebSocket", "importScripts", "sendBeacon"})
    EXPECT_EQ(page.find(loads), std::string::npos) << loads;
}

}  // namespace
}  // namespace firebreak::characterize
