// SPDX-License-Identifier: Apache-2.0
/// The rules' tests share a tree made of strings.
#pragma once

#include <string>
#include <utility>
#include <vector>

#include "tools/tidy/rule.h"

namespace firebreak::tidy {

/// A checkout that exists only here: pairs of path and text, and its targets.
inline SourceTree tree_of(const std::vector<std::pair<std::string, std::string>>& files,
                          std::vector<Target> targets = {}) {
  std::vector<SourceFile> read;
  for (const auto& [path, text] : files) read.emplace_back(path, text);
  return SourceTree(std::move(read), std::move(targets));
}

/// A target of `folder` with one source. What it links it passes on, as the libraries of this project do.
inline Target target_of(std::string name, std::string folder, std::string source,
                        std::vector<std::string> links = {}, TargetKind kind = TargetKind::Library) {
  std::string path = folder + "/" + source;
  auto passed_on = links;
  return {std::move(name),     kind, std::move(folder), {std::move(path)}, std::move(links),
          std::move(passed_on)};
}

/// Findings as "path:line", in order.
inline std::vector<std::string> places(const std::vector<Finding>& findings) {
  std::vector<std::string> result;
  for (const auto& finding : findings) result.push_back(finding.path + ":" + std::to_string(finding.line));
  return result;
}

}  // namespace firebreak::tidy
