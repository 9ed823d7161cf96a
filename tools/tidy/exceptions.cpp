// SPDX-License-Identifier: Apache-2.0
#include "tools/tidy/exceptions.h"

#include <algorithm>
#include <optional>
#include <sstream>

namespace firebreak::tidy {
namespace {

/// One line of the file.
struct Exception {
  std::string rule;
  std::string path;
};

bool is_rule(const std::string& name) {
  const auto rules = all_rules();
  return std::any_of(rules.begin(), rules.end(), [&](const Rule& rule) { return rule.name == name; });
}

/// Nothing when the line lacks one of its three parts.
std::optional<Exception> parse(const std::string& line) {
  std::istringstream words(line);
  Exception exception;
  std::string reason;
  if (!(words >> exception.rule >> exception.path >> reason)) return std::nullopt;
  if (!exception.path.ends_with(":") || !is_rule(exception.rule)) return std::nullopt;
  exception.path.pop_back();
  return exception;
}

}  // namespace

std::vector<Finding> apply_exceptions(std::vector<Finding> findings, std::string_view exceptions,
                                      std::string_view path) {
  std::istringstream lines{std::string(exceptions)};
  int number = 0;
  for (std::string line; std::getline(lines, line);) {
    ++number;
    if (line.empty() || line.starts_with("#")) continue;
    const auto exception = parse(line);
    const auto report = [&](const char* message) {
      findings.push_back({std::string(path), number, "exception", message});
    };
    if (!exception) {
      report("not of the form RULE PATH: REASON, or no such rule");
      continue;
    }
    const auto covered = std::erase_if(findings, [&](const Finding& finding) {
      return finding.rule == exception->rule && finding.path == exception->path;
    });
    if (covered == 0) report("covers nothing any more; remove it");
  }
  return findings;
}

}  // namespace firebreak::tidy
