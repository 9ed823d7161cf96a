// SPDX-License-Identifier: Apache-2.0
#include "characterize/page.h"

#include <nlohmann/json.hpp>
#include <string_view>

#include "characterize/result_json.h"
#include "characterize/summary_json.h"

namespace firebreak::characterize {

/// Made by the build from page/.
std::string_view page_script();
std::string_view page_style();

namespace {

using json = nlohmann::ordered_json;

json comparison_json(const Comparison& comparison) {
  json out{{"before", machine_json(comparison.before)},
           {"after", machine_json(comparison.after)},
           {"only_before", comparison.only_before},
           {"only_after", comparison.only_after},
           {"changes", json::array()},
           {"medians", json::array()}};
  for (const Change& change : comparison.changes) {
    out["changes"].push_back(
        {{"kind", change.kind}, {"what", change.what}, {"before", change.before}, {"after", change.after}});
  }
  for (const MedianPair& pair : comparison.medians) {
    out["medians"].push_back({{"kind", pair.kind},
                              {"figure", pair.figure},
                              {"before_ms", pair.before_ms},
                              {"after_ms", pair.after_ms},
                              {"changed", pair.changed}});
  }
  return out;
}

/// The data of the page: the summary with all its values, and those runs alone that stand for a class.
json page_json(const Results& results, const Comparison* against) {
  const Summary summary = summarize(results);
  json out{{"machine", machine_json(results.machine)},
           {"command", results.command},
           {"seed", results.seed},
           {"repeat", results.repeat},
           {"softgpu_speed", results.softgpu_speed},
           {"finished", results.finished},
           {"runs", results.runs.size()},
           {"summary", summary_json(summary, Values::All)},
           {"expected", json::array()},
           {"lives", json::object()},
           {"against", against == nullptr ? json() : comparison_json(*against)}};
  for (const Expected& expected : results.expected) out["expected"].push_back(expected_json(expected));
  for (const auto& [fault_class, run] : summary.typical_runs)
    out["lives"][fault_class] = run_json(results.runs[run]);
  return out;
}

/// Inside a script element "<" could end it.
std::string without_markup(std::string text) {
  for (std::size_t at = text.find('<'); at != std::string::npos; at = text.find('<', at + 6))
    text.replace(at, 1, "\\u003c");
  return text;
}

}  // namespace

Status page_is_there() {
  if (!page_script().empty()) return {};
  return fail(ErrorCode::Unsupported, "this build has no page: there was no npm when it was configured",
              "install nodejs and npm, and build again");
}

std::string to_html(const Results& results, const Comparison* against) {
  std::string page =
      "<!doctype html>\n<html lang=\"en\">\n<head>\n<meta charset=\"utf-8\">\n"
      "<meta name=\"viewport\" content=\"width=device-width\">\n"
      "<title>Firebreak: every fault, characterized</title>\n<link rel=\"icon\" href=\"data:,\">\n<style>\n";
  page += page_style();
  page +=
      "</style>\n</head>\n<body>\n<main id=\"report\"></main>\n<script type=\"application/json\" "
      "id=\"results\">";
  page += without_markup(page_json(results, against).dump());
  page += "</script>\n<script>\n";
  page += page_script();
  page += "\n</script>\n</body>\n</html>\n";
  return page;
}

}  // namespace firebreak::characterize
