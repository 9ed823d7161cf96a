// SPDX-License-Identifier: Apache-2.0
#include "tools/tidy/targets.h"

#include <sstream>

namespace firebreak::tidy {
namespace {

/// Reads CMake's word for its type.
TargetKind kind_of(std::string_view type) {
  if (type == "TEST") return TargetKind::Test;
  if (type == "EXECUTABLE") return TargetKind::Program;
  if (type == "SHARED_LIBRARY" || type == "MODULE_LIBRARY" || type == "OBJECT_LIBRARY")
    return TargetKind::Shared;
  return TargetKind::Library;
}

}  // namespace

std::optional<std::vector<Target>> parse_targets(std::string_view text) {
  std::vector<Target> targets;
  std::istringstream lines{std::string(text)};
  for (std::string line; std::getline(lines, line);) {
    std::istringstream words(line);
    std::string what, name;
    if (!(words >> what >> name)) return std::nullopt;
    if (what == "target") {
      std::string type, folder;
      if (!(words >> type >> folder)) return std::nullopt;
      targets.push_back({name, kind_of(type), folder, {}, {}, {}});
      continue;
    }
    if (targets.empty()) return std::nullopt;
    Target& target = targets.back();
    if (what == "source") {
      target.sources.push_back(name);
    } else if (what == "direct") {
      target.direct.push_back(name);
    } else if (what == "passed_on") {
      target.passed_on.push_back(name);
    } else {
      return std::nullopt;
    }
  }
  return targets;
}

}  // namespace firebreak::tidy
