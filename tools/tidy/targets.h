// SPDX-License-Identifier: Apache-2.0
/// The targets that CMake builds, as cmake/FirebreakTargetList.cmake wrote them: the one truth about who may
/// include whom.
#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace firebreak::tidy {

enum class TargetKind {
  Library,  ///< static, or headers alone: whoever links it may include its headers
  Shared,   ///< a shared library, a module, or objects: linked for what it does, not to be included
  Program,
  Test,
};

/// One target. Paths are from the repository's root.
struct Target {
  std::string name;
  TargetKind kind = TargetKind::Library;
  std::string folder;                  ///< folder of its CMakeLists.txt
  std::vector<std::string> sources;    ///< leaves out what the build makes
  std::vector<std::string> direct;     ///< the targets of ours that it links itself
  std::vector<std::string> passed_on;  ///< links that its users may include, too
};

/// Empty when a line is none of: `target NAME TYPE FOLDER`, `source PATH`, `direct NAME`, `passed_on NAME`.
std::optional<std::vector<Target>> parse_targets(std::string_view text);

}  // namespace firebreak::tidy
