// SPDX-License-Identifier: Apache-2.0
#include "kernels/ptx/diagnostic.h"

namespace firebreak::ptx {

std::string quoted(std::string_view text) {
  constexpr std::size_t longest = 60;
  std::string result = "'";
  for (const char c : text.substr(0, longest)) result += (c >= ' ' && c < 0x7f) ? c : '?';
  return result + (text.size() > longest ? "...'" : "'");
}

std::string to_string(const Diagnostic& diagnostic, std::string_view file_name) {
  return std::string(file_name) + ':' + std::to_string(diagnostic.location.line) + ':' +
         std::to_string(diagnostic.location.column) + ": " + diagnostic.message;
}

}  // namespace firebreak::ptx
