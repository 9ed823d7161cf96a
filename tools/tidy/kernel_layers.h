// SPDX-License-Identifier: Apache-2.0
/// The layers of kernel/'s files, as its page has them, and what a C file defines.
#pragma once

#include <map>
#include <set>
#include <string>
#include <string_view>

namespace firebreak::tidy {

/// The page whose tables ("| layer of `FOLDER` | files |") say in which order the files of a folder stand.
inline constexpr std::string_view kernel_layers_path = "kernel/README.md";

/// Functions and variables that a C file defines outside of all braces.
struct KernelNames {
  std::set<std::string> own;      ///< names of all of them
  std::set<std::string> offered;  ///< names of those that are not static
};

/// Reads a code view without directives (source_text.h). Where one statement has several variables it knows
/// the last.
KernelNames kernel_names(std::string_view code);

}  // namespace firebreak::tidy
