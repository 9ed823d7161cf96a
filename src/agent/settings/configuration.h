// SPDX-License-Identifier: Apache-2.0
/// firebreakd's configuration file: TOML whose keys are the options of its command line, without their
/// dashes.
#pragma once

#include <string>
#include <vector>

#include "ground/base/result.h"

namespace firebreak::agent {

struct ConfiguredOption {
  std::string key;
  /// Values as a command line would have them; several where the file has an array.
  std::vector<std::string> values;
  bool is_switch = false;  ///< true or false, and then `values` has one of the words
  unsigned line = 0;       ///< line in the file
};

/// Parses in the order of the file. `path` is for what is said about it.
Result<std::vector<ConfiguredOption>> parse_configuration(const std::string& text, const std::string& path);

/// Advice about a key or value that is none.
inline constexpr const char* configuration_hint =
    "a key is an option of `firebreakd --help` without its dashes, as lease-s = 120";

}  // namespace firebreak::agent
