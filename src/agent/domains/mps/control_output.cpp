// SPDX-License-Identifier: Apache-2.0
#include "agent/domains/mps/control_output.h"

#include <algorithm>
#include <charconv>

namespace firebreak::mps {
namespace {

constexpr std::string_view blank = " \t\r\n";
constexpr std::size_t longest_quote = 120;

/// The first line that says something, for a message to a person.
std::string quote(std::string_view output) {
  output.remove_prefix(std::min(output.find_first_not_of(blank), output.size()));
  return std::string(output.substr(0, std::min(output.find('\n'), longest_quote)));
}

bool says_not_there(std::string_view output) {
  return output.find("nvalid") != std::string_view::npos ||
         output.find("ot found") != std::string_view::npos || output.find("o such") != std::string_view::npos;
}

}  // namespace

Result<std::vector<pid_t>> parse_process_ids(std::string_view output) {
  std::vector<pid_t> ids;
  std::string_view rest = output;
  while (true) {
    rest.remove_prefix(std::min(rest.find_first_not_of(blank), rest.size()));
    if (rest.empty()) return ids;
    const std::string_view word = rest.substr(0, rest.find_first_of(blank));
    pid_t id = 0;
    const auto parsed = std::from_chars(word.data(), word.data() + word.size(), id);
    if (parsed.ec != std::errc{} || parsed.ptr != word.data() + word.size() || id <= 0) {
      return fail(says_not_there(output) ? ErrorCode::NotFound : ErrorCode::Protocol,
                  "MPS answered: " + quote(output));
    }
    ids.push_back(id);
    rest.remove_prefix(word.size());
  }
}

Status parse_answer(std::string_view output) {
  if (says_not_there(output)) return fail(ErrorCode::NotFound, "MPS answered: " + quote(output));
  if (output.find("rror") != std::string_view::npos || output.find("ailed") != std::string_view::npos) {
    return fail(ErrorCode::Device, "MPS answered: " + quote(output));
  }
  return {};
}

}  // namespace firebreak::mps
