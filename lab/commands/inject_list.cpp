// SPDX-License-Identifier: Apache-2.0
#include "commands/inject_list.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <nlohmann/json.hpp>

#include "inject/catalogue.h"

namespace firebreak::commands {
namespace {

using Json = nlohmann::ordered_json;

std::string error_text(CUresult error) {
  return error == CUDA_SUCCESS ? "-" : std::to_string(static_cast<int>(error));
}

std::string row(const inject::Kind& kind) {
  const inject::Expectation& expected = kind.expectation;
  const std::string first = expected.first_seen_by ? fault::to_string(*expected.first_seen_by) : "nobody";
  return fmt::format("  {:<23}{} {:>7} {:>7} {:>7}  {:<8}{:<14}{}\n", kind.name,
                     expected.measured ? ' ' : '?', error_text(expected.faulter),
                     error_text(expected.co_client), error_text(expected.outsider),
                     fmt::format("{}", fmt::join(expected.xids, ",")), first, kind.summary);
}

Json to_json(const inject::Kind& kind) {
  const inject::Expectation& expected = kind.expectation;
  Json json;
  json["name"] = kind.name;
  json["summary"] = kind.summary;
  json["class"] = fault::to_string(kind.fault_class);
  json["expectation"] = {{"faulter", static_cast<int>(expected.faulter)},
                         {"co_client", static_cast<int>(expected.co_client)},
                         {"sometimes", static_cast<int>(expected.sometimes)},
                         {"outsider", static_cast<int>(expected.outsider)},
                         {"xids", std::vector<int>(expected.xids.begin(), expected.xids.end())},
                         {"first_seen_by", nullptr},
                         {"measured", expected.measured}};
  if (expected.first_seen_by)
    json["expectation"]["first_seen_by"] = fault::to_string(*expected.first_seen_by);
  const std::string_view why_not = inject::why_not_demonstrable(kind);
  json["not_in_the_demo_because"] = nullptr;
  if (!why_not.empty()) json["not_in_the_demo_because"] = why_not;
  return json;
}

}  // namespace

std::string catalogue_text() {
  std::string text = fmt::format("{:<26} {:>7} {:>7} {:>7}  {:<8}{:<14}{}\n", "kind", "faulter", "others",
                                 "outside", "Xids", "first seen by", "what happens");
  std::string group;
  for (const inject::Kind* kind : inject::catalogue()) {
    const std::string of = fault::to_string(kind->fault_class);
    if (of != group) text += of + "\n";
    group = of;
    text += row(*kind);
  }
  text +=
      "\nNumbers are the CUDA errors expected in the faulter, in others of its MPS domain and outside of it; "
      "-:\n"
      "none (a process that ends sees none itself). ?: nobody looked yet; the nearest measured kind's "
      "figures.\n";
  for (const inject::Kind* kind : inject::catalogue()) {
    if (!inject::is_demonstrable(*kind))
      text += fmt::format("Not in `firebreak-lab demo`: {} ({})\n", kind->name,
                          inject::why_not_demonstrable(*kind));
  }
  return text;
}

std::string catalogue_json() {
  Json kinds = Json::array();
  for (const inject::Kind* kind : inject::catalogue()) kinds.push_back(to_json(*kind));
  return Json{{"kinds", kinds}}.dump(2) + "\n";
}

}  // namespace firebreak::commands
