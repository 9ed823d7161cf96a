// SPDX-License-Identifier: Apache-2.0
#include "agent/settings/configuration.h"

#include <fmt/format.h>
#include <toml++/toml.h>

#include <algorithm>
#include <optional>

namespace firebreak::agent {
namespace {

unsigned line_of(const toml::node& node) { return node.source().begin.line; }

/// None: it is nothing that a command line has.
std::optional<std::string> word_of(const toml::node& node) {
  if (const auto* text = node.as_string()) return text->get();
  if (const auto* whole = node.as_integer()) return fmt::format("{}", whole->get());
  if (const auto* number = node.as_floating_point()) return fmt::format("{}", number->get());
  if (const auto* is_on = node.as_boolean()) return is_on->get() ? "true" : "false";
  return std::nullopt;
}

Result<ConfiguredOption> option_of(const std::string& key, const toml::node& node, const std::string& path) {
  ConfiguredOption option{key, {}, node.is_boolean(), line_of(node)};
  const auto refuse = [&] {
    return fail(ErrorCode::InvalidArgument,
                fmt::format("{}, line {}: '{}' is no value and no list of values", path, option.line, key),
                configuration_hint);
  };
  const auto add = [&option](const toml::node& value) {
    const auto word = word_of(value);
    if (word) option.values.push_back(*word);
    return word.has_value();
  };
  const auto* list = node.as_array();
  if (list == nullptr && !add(node)) return refuse();
  if (list != nullptr && !std::ranges::all_of(*list, add)) return refuse();
  return option;
}

}  // namespace

Result<std::vector<ConfiguredOption>> parse_configuration(const std::string& text, const std::string& path) {
  toml::table table;
  try {
    table = toml::parse(text);
  } catch (const toml::parse_error& wrong) {
    return fail(ErrorCode::InvalidArgument,
                fmt::format("{}, line {}: {}", path, wrong.source().begin.line, wrong.description()));
  }
  std::vector<ConfiguredOption> options;
  for (const auto& [key, node] : table) {
    auto option = option_of(std::string(key.str()), node, path);
    if (!option) return propagate(option);
    options.push_back(std::move(*option));
  }
  std::ranges::stable_sort(options, {}, &ConfiguredOption::line);
  return options;
}

}  // namespace firebreak::agent
