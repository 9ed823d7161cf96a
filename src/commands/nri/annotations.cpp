// SPDX-License-Identifier: Apache-2.0
#include "commands/nri/annotations.h"

#include <fmt/format.h>

#include <string_view>
#include <utility>
#include <vector>

#include "commands/seats/seats.h"
#include "ground/base/text.h"

namespace firebreak::nri {
namespace {

constexpr std::string_view prefix = "firebreak.dev/";
/// firebreak-k8s writes it itself (src/commands/cluster).
constexpr std::string_view last_fault = "firebreak.dev/last-fault";
constexpr std::string_view blanks = " \t";
/// A line of ours quotes at most this much of anybody's text. A line is to stay one, and ttrpc takes UTF-8
/// alone.
constexpr std::size_t most_of_value_bytes = 80;

std::vector<std::string> split(std::string_view text) {
  std::vector<std::string> parts;
  for (std::size_t comma = 0; comma != std::string_view::npos; text.remove_prefix(comma + 1)) {
    comma = text.find(',');
    parts.push_back(trimmed(text.substr(0, comma), blanks));
    if (comma == std::string_view::npos) break;
  }
  return parts;
}

tl::unexpected<Error> bad(const char* annotation, const std::string& value, const std::string& why) {
  return fail(
      ErrorCode::InvalidArgument,
      fmt::format("annotation {}: \"{}\": {}", annotation, printable(value, most_of_value_bytes), why),
      "docs/use/containers.md has its forms");
}

/// The seats by container; "" is all others.
Result<std::map<std::string, std::string>> seats_in(const std::string& value) {
  const auto refuse = [&](const std::string& why) { return bad(seat_annotation, value, why); };
  std::map<std::string, std::string> all;
  for (const std::string& part : split(value)) {
    const auto sign = part.find('=');
    const bool is_for_all = sign == std::string::npos;
    const std::string container = is_for_all ? "" : trimmed(part.substr(0, sign), blanks);
    const std::string domain = is_for_all ? part : trimmed(part.substr(sign + 1), blanks);
    if (!is_for_all && container.empty()) return refuse("a container's name is missing");
    if (!seats::check_domain_name(domain)) return refuse("it names no domain, nor \"any\"");
    if (!all.emplace(container, domain == "any" ? "" : domain).second)
      return refuse(is_for_all ? "two domains for all containers"
                               : fmt::format("container '{}' is named twice",
                                             printable(container, most_of_value_bytes)));
  }
  return all;
}

Result<std::pair<std::string, std::string>> pair_in(const std::string& value) {
  const auto names = split(value);
  const bool are_two = names.size() == 2 && !names[0].empty() && !names[1].empty() && names[0] != names[1] &&
                       value.find('=') == std::string::npos;
  if (!are_two) return bad(pair_annotation, value, "it names two containers, the active and the standby");
  return std::pair(names[0], names[1]);
}

Status know_all(const Annotations& annotations) {
  for (const auto& [name, value] : annotations) {
    if (!name.starts_with(prefix) || name == seat_annotation || name == pair_annotation || name == last_fault)
      continue;
    return fail(ErrorCode::InvalidArgument,
                fmt::format("annotation {}: there is no such one", printable(name, most_of_value_bytes)),
                fmt::format("{} or {}", seat_annotation, pair_annotation));
  }
  return {};
}

}  // namespace

Result<std::optional<Wish>> wish_of(const Annotations& annotations, const std::string& container) {
  if (const Status known = know_all(annotations); !known) return propagate(known);
  std::optional<Wish> wish;
  std::map<std::string, std::string> seats;
  if (const auto asked = annotations.find(seat_annotation); asked != annotations.end()) {
    auto found = seats_in(asked->second);
    if (!found) return propagate(found);
    seats = std::move(*found);
    for (const std::string& name : {std::string(), container}) {
      if (const auto own = seats.find(name); own != seats.end()) wish = Wish{PairPart::Alone, own->second};
    }
  }
  const auto asked = annotations.find(pair_annotation);
  if (asked == annotations.end()) return wish;
  const auto pair = pair_in(asked->second);
  if (!pair) return propagate(pair);
  for (const std::string& name : {pair->first, pair->second}) {
    if (seats.contains(name))
      return bad(
          pair_annotation, asked->second,
          fmt::format("container '{}' is in {}, too", printable(name, most_of_value_bytes), seat_annotation));
  }
  if (container == pair->first) return Wish{PairPart::Active, {}};
  if (container == pair->second) return Wish{PairPart::Standby, {}};
  return wish;
}

}  // namespace firebreak::nri
