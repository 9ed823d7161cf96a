// SPDX-License-Identifier: Apache-2.0
#include "agent/parking/park/evidence.h"

#include <fmt/format.h>

#include <algorithm>
#include <nlohmann/json.hpp>
#include <optional>

#include "ground/base/text.h"

namespace firebreak::park {
namespace {

using Json = nlohmann::json;

constexpr std::size_t longest_id = 128;
constexpr std::size_t longest_text = 1024;
constexpr std::size_t most_entries = 1000;

std::string text_at(const Json& object, const char* name) {
  const auto found = object.find(name);
  return found != object.end() && found->is_string() ? printable(found->get<std::string>(), longest_text)
                                                     : std::string();
}

template <class Number>
std::optional<Number> number_at(const Json& object, const char* name) {
  const auto found = object.find(name);
  if (found == object.end() || !found->is_number_unsigned()) return std::nullopt;
  const auto value = found->get<std::uint64_t>();
  return value <= std::numeric_limits<Number>::max() ? std::optional(static_cast<Number>(value))
                                                     : std::nullopt;
}

template <class Number>
Json or_null(const std::optional<Number>& number) {
  return number ? Json(*number) : Json();
}

std::vector<Json> objects_at(const Json& object, const char* name) {
  std::vector<Json> all;
  const auto found = object.find(name);
  if (found == object.end() || !found->is_array()) return all;
  for (const Json& each : *found) {
    if (each.is_object() && all.size() < most_entries) all.push_back(each);
  }
  return all;
}

Json exception_json(const fault::CoreDumpException& exception) {
  return {{"type", exception.type},
          {"kernel", exception.kernel},
          {"program_counter", or_null(exception.program_counter)},
          {"sm", or_null(exception.sm)},
          {"warp", or_null(exception.warp)}};
}

fault::CoreDumpException exception_from(const Json& json) {
  fault::CoreDumpException exception;
  exception.type = text_at(json, "type");
  exception.kernel = text_at(json, "kernel");
  exception.program_counter = number_at<std::uint64_t>(json, "program_counter");
  exception.sm = number_at<std::uint32_t>(json, "sm");
  exception.warp = number_at<std::uint32_t>(json, "warp");
  return exception;
}

std::string where(const fault::CoreDumpException& exception) {
  std::string text = exception.program_counter ? fmt::format("PC {:#x}", *exception.program_counter) : "";
  const auto add = [&text](const char* what, const std::optional<std::uint32_t>& number) {
    if (number) text += fmt::format("{}{} {}", text.empty() ? "" : ", ", what, *number);
  };
  add("SM", exception.sm);
  add("warp", exception.warp);
  return text.empty() ? "not told" : text;
}

}  // namespace

bool is_evidence_id(std::string_view text) {
  const auto is_good = [](char c) {
    return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || c == '.' ||
           c == '_' || c == '-';
  };
  return !text.empty() && text.size() <= longest_id && text.front() != '.' &&
         std::ranges::all_of(text, is_good);
}

std::string to_json(const Evidence& evidence) {
  Json json = {{"id", evidence.id},
               {"when", evidence.when},
               {"culprit", {{"name", evidence.name}, {"pid", evidence.pid}, {"domain", evidence.domain}}},
               {"exception", exception_json(evidence.exception)},
               {"fault", evidence.fault},
               {"timeline", Json::array()},
               {"affected", Json::array()},
               {"dump_bytes", evidence.dump_bytes},
               {"dump_is_cut", evidence.is_cut}};
  for (const Moment& each : evidence.timeline)
    json["timeline"].push_back({{"ms", each.ms}, {"what", each.what}});
  for (const Affected& each : evidence.affected)
    json["affected"].push_back({{"name", each.name}, {"became", each.became}});
  return json.dump(1, ' ', true, Json::error_handler_t::replace) + "\n";
}

Result<Evidence> evidence_from(std::string_view text) {
  const Json json = Json::parse(text, nullptr, false);
  if (!json.is_object() || !is_evidence_id(text_at(json, "id")))
    return fail(ErrorCode::Protocol, "no report of a fault");
  const Json culprit = json.value("culprit", Json::object());
  const Json exception = json.value("exception", Json::object());
  if (!culprit.is_object() || !exception.is_object())
    return fail(ErrorCode::Protocol, "no report of a fault");
  Evidence evidence;
  evidence.id = text_at(json, "id");
  evidence.when = text_at(json, "when");
  evidence.fault = text_at(json, "fault");
  evidence.name = text_at(culprit, "name");
  evidence.domain = text_at(culprit, "domain");
  evidence.pid = number_at<pid_t>(culprit, "pid").value_or(0);
  evidence.exception = exception_from(exception);
  for (const Json& each : objects_at(json, "timeline")) {
    const auto ms = each.find("ms");
    const bool is_number = ms != each.end() && ms->is_number();
    evidence.timeline.push_back({is_number ? ms->get<double>() : 0.0, text_at(each, "what")});
  }
  for (const Json& each : objects_at(json, "affected"))
    evidence.affected.push_back({text_at(each, "name"), text_at(each, "became")});
  evidence.dump_bytes = number_at<std::uint64_t>(json, "dump_bytes").value_or(0);
  const auto is_cut = json.find("dump_is_cut");
  evidence.is_cut = is_cut != json.end() && is_cut->is_boolean() && is_cut->get<bool>();
  return evidence;
}

std::string to_text(const Evidence& evidence, const std::string& dump_path) {
  const fault::CoreDumpException& exception = evidence.exception;
  std::string text = fmt::format(
      "{}\n  exception  {}\n  kernel     {}\n  where      {}\n  raised by  {}, in domain {}\n"
      "  when       {}\n",
      evidence.id, exception.type, exception.kernel.empty() ? "not told" : exception.kernel, where(exception),
      evidence.name, evidence.domain, evidence.when);
  text += fmt::format("  core dump  {}\n",
                      dump_path.empty()
                          ? "none"
                          : fmt::format("{} ({} bytes{}; cuda-gdb: target cudacore FILE)", dump_path,
                                        evidence.dump_bytes, evidence.is_cut ? ", cut short" : ""));
  text += "  timeline\n";
  for (const Moment& each : evidence.timeline)
    text += fmt::format("  {:>10.1f} ms  {}\n", each.ms, each.what);
  if (evidence.fault.empty() && evidence.affected.empty()) return text + "  its fault is not over yet\n";
  text +=
      fmt::format("  fault      {}\n  who else was there\n", evidence.fault.empty() ? "-" : evidence.fault);
  for (const Affected& each : evidence.affected) text += fmt::format("    {}: {}\n", each.name, each.became);
  if (evidence.affected.empty()) text += "    nobody\n";
  return text;
}

}  // namespace firebreak::park
