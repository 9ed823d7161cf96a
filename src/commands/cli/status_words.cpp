// SPDX-License-Identifier: Apache-2.0
#include "commands/cli/status_words.h"

#include <fmt/format.h>

#include <algorithm>

namespace firebreak::cli {

std::string word(const nlohmann::json& object, const char* name, const std::string& otherwise) {
  const auto found = object.find(name);
  if (found == object.end() || found->is_null()) return otherwise;
  if (!found->is_string()) return found->dump();
  const auto& text = found->get_ref<const std::string&>();
  return text.empty() ? otherwise : text;
}

std::string restarts_of(const nlohmann::json& domain) {
  std::string text;
  for (const auto& [name, who] : {std::pair("daemon_restarts", "daemon"), {"server_restarts", "server"}}) {
    const std::string count = word(domain, name, "0");
    if (count != "0") text += fmt::format("{}{} {}", text.empty() ? "" : ", ", who, count);
  }
  return text.empty() ? "none" : text;
}

std::string table(const std::vector<std::vector<std::string>>& rows) {
  std::vector<std::size_t> widths;
  for (const auto& row : rows) {
    widths.resize(std::max(widths.size(), row.size()));
    for (std::size_t at = 0; at < row.size(); ++at) widths[at] = std::max(widths[at], row[at].size());
  }
  std::string text;
  for (const auto& row : rows) {
    std::string line;
    for (std::size_t at = 0; at < row.size(); ++at) line += fmt::format("{:<{}}", row[at], widths[at] + 2);
    text += line.substr(0, line.find_last_not_of(' ') + 1) + "\n";
  }
  return text;
}

}  // namespace firebreak::cli
