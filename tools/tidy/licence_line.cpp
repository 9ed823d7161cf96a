// SPDX-License-Identifier: Apache-2.0
#include <algorithm>

#include "tools/tidy/rule.h"

namespace firebreak::tidy {

std::vector<Finding> check_licence_line(const SourceTree& tree) {
  std::vector<Finding> findings;
  for (const SourceFile& file : tree.files()) {
    if (file.kind() == FileKind::Other) continue;
    std::string_view text = file.text();
    if (text.starts_with("#!")) text.remove_prefix(std::min(text.find('\n'), text.size() - 1) + 1);
    const std::string_view first = text.substr(0, text.find('\n'));
    if (first.find("SPDX-License-Identifier: ") != std::string_view::npos) continue;
    findings.push_back({file.path(), 1, "licence-line", "the first line has no SPDX-License-Identifier"});
  }
  return findings;
}

}  // namespace firebreak::tidy
