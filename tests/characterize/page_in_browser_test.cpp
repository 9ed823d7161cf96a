// SPDX-License-Identifier: Apache-2.0
#include <gmock/gmock.h>

#include <map>

#include "tests/characterize/characterization.h"
#include "tests/demo/page_look.h"

namespace firebreak::tests {
namespace {

using testing::Contains;
using testing::Each;
using testing::ElementsAre;
using testing::IsEmpty;
using testing::Key;
using testing::StartsWith;
using Texts = std::vector<std::string>;

struct PageInBrowser : Characterization {};

/// Marks of one sort in all figures of one sort.
int marks(const nlohmann::json& seen, const std::string& figure, const std::string& mark) {
  int count = 0;
  for (const auto& one : seen.at("figures")) {
    if (one.at("of") == figure) count += one.at("marks").value(mark, 0);
  }
  return count;
}

TEST_F(PageInBrowser, ShowsEverythingAndLoadsNothing) {
  const std::string page = sandbox.file("page.html");
  const auto result = characterize({"--kinds", "unmapped-store-far,misaligned-load,sigkill,double-bit-ecc",
                                    "--repeat", "3", "--json", json_path, "--html", page});
  const auto seen = look_at(page);
  ASSERT_TRUE(seen.is_object()) << result.output;
  EXPECT_THAT(seen.at("complaints").get<Texts>(), IsEmpty());
  EXPECT_THAT(seen.at("requests").get<Texts>(), ElementsAre("file://" + page));
  EXPECT_THAT(seen.at("kinds").get<Texts>(),
              ElementsAre("unmapped-store-far", "misaligned-load", "sigkill", "double-bit-ecc"));
  EXPECT_EQ(seen.at("broken"), 0);
  EXPECT_THAT(seen.at("cut_off").get<Texts>(), IsEmpty());
  expect_fits_narrow_screen(seen);
  EXPECT_EQ(marks(seen, "blast", "cell"), 4 * 4) << "each kind's four processes";
  EXPECT_GE(marks(seen, "life", "dot"), 4 * 2) << "in each class two sources at least";
  EXPECT_GE(marks(seen, "life", "bar"), 4 * 4) << "and the four processes";
  EXPECT_GE(marks(seen, "signals", "tick"), 4 * 2) << "each source's median";
  EXPECT_GE(marks(seen, "afterwards", "tick"), 3 * 2) << "survivors' stalls where somebody survived";
  EXPECT_GE(marks(seen, "attribution", "bar"), 4);
  for (const auto& figure : seen.at("figures")) EXPECT_NE(figure.at("reading"), "") << figure.dump();
}

TEST_F(PageInBrowser, ShowsWhatChanged) {
  const std::string page = sandbox.file("page.html");
  const std::string original = sandbox.file("original.json");
  ASSERT_TRUE(
      is_finished(characterize({"--kinds", "unmapped-store-far", "--repeat", "3", "--json", original})));
  json_path = original;
  auto changed = results();
  json_path = sandbox.file("changed.json");
  for (auto& run : changed.at("runs")) {
    for (auto& signal : run.at("signals")) {
      if (signal.at("source") == "xid") signal["after_ms"] = 9.0 * signal.at("after_ms").get<double>();
    }
  }
  write_results(changed);
  const auto result = characterize({"--kinds", "unmapped-store-far", "--repeat", "3", "--json", json_path,
                                    "--resume", "--html", page, "--against", original});
  const auto seen = look_at(page);
  ASSERT_TRUE(seen.is_object()) << result.output;
  EXPECT_THAT(seen.at("sections").get<Texts>(), Contains("Compared with another result"));
  EXPECT_EQ(marks(seen, "against", "link"), 1) << "the one median that moved";
  EXPECT_EQ(seen.at("broken"), 0);
  EXPECT_THAT(seen.at("cut_off").get<Texts>(), IsEmpty());
  expect_fits_narrow_screen(seen);
}

}  // namespace
}  // namespace firebreak::tests
