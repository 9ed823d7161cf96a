// SPDX-License-Identifier: Apache-2.0
/// The agent's status in words and tables. Pure.
#pragma once

#include <nlohmann/json.hpp>
#include <string>
#include <vector>

namespace firebreak::cli {

/// Of a field that may be missing, or be nothing.
std::string word(const nlohmann::json& object, const char* name, const std::string& otherwise = "-");

/// "daemon 1, server 2", of a domain's; "none".
std::string restarts_of(const nlohmann::json& domain);

/// Each column as wide as its widest word, the last one left alone; each line has its end.
std::string table(const std::vector<std::vector<std::string>>& rows);

}  // namespace firebreak::cli
