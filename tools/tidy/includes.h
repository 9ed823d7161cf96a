// SPDX-License-Identifier: Apache-2.0
/// The #includes of a file, and which file of the checkout each means.
#pragma once

#include <string>
#include <vector>

#include "tools/tidy/source_tree.h"

namespace firebreak::tidy {

/// One #include: what stands between the quotes (or the angle brackets), and its line.
struct Include {
  std::string name;
  int line = 0;
  bool quoted = true;
};

/// Lists them in order; none where the file is no C++.
std::vector<Include> includes_of(const SourceFile& file);

/// The file that an include means; null when none stands at one of the places that includes start from.
const SourceFile* included_file(const SourceTree& tree, const Include& include);

}  // namespace firebreak::tidy
