// SPDX-License-Identifier: Apache-2.0
#include "os/process_stat.h"

#include <charconv>

namespace firebreak::os {

std::string_view stat_field(std::string_view stat, int number) {
  std::size_t at = stat.rfind(')');
  for (int i = 2; i < number && at != std::string_view::npos; ++i) at = stat.find(' ', at + 1);
  if (at == std::string_view::npos) return {};
  return stat.substr(at + 1, stat.find(' ', at + 1) - at - 1);
}

std::string_view program_name(std::string_view stat) {
  const std::size_t begin = stat.find('(');
  const std::size_t end = stat.rfind(')');
  if (begin == std::string_view::npos || end == std::string_view::npos || end < begin) return {};
  return stat.substr(begin + 1, end - begin - 1);
}

std::string_view start_time(std::string_view stat) { return stat_field(stat, 22); }

bool is_alive(std::string_view stat) {
  const std::string_view state = stat_field(stat, 3);
  return !state.empty() && state != "Z" && state != "X";
}

std::string_view parent(std::string_view stat) { return stat_field(stat, 4); }

std::string image(std::string_view stat) {
  const std::string_view code = stat_field(stat, 26);
  const std::string_view stack = stat_field(stat, 28);
  // What Linux hides it shows as 1 and 0.
  if (code.size() < 2 || stack.size() < 2) return {};
  return std::string(code) + ":" + std::string(stack);
}

std::uint64_t stat_flags(std::string_view stat) {
  const std::string_view text = stat_field(stat, 9);
  std::uint64_t flags = 0;
  std::from_chars(text.data(), text.data() + text.size(), flags);
  return flags;
}

}  // namespace firebreak::os
