// SPDX-License-Identifier: Apache-2.0
#include "program/instance/window.h"

#include <array>
#include <charconv>
#include <cstdio>

namespace firebreak::instance {
namespace {

/// "5000-6000 rw-p ...": Linux makes one line of mappings of one file that touch, so the window may begin or
/// end inside of it.
void add_without_window(std::string& kept, std::string_view line) {
  constexpr std::uint64_t window_end = window_begin + window_bytes;
  std::uint64_t begin = 0;
  std::uint64_t end = 0;
  const char* const last = line.data() + line.size();
  const char* next = std::from_chars(line.data(), last, begin, 16).ptr;
  if (next != last) next = std::from_chars(next + 1, last, end, 16).ptr;
  if (end <= window_begin || begin >= window_end) {
    kept += line;
    return;
  }
  const std::string_view rest = line.substr(static_cast<std::size_t>(next - line.data()));
  const auto add = [&](std::uint64_t from, std::uint64_t to) {
    std::array<char, 40> numbers{};
    const int size = std::snprintf(numbers.data(), numbers.size(), "%lx-%lx", from, to);
    kept.append(numbers.data(), static_cast<std::size_t>(size)).append(rest);
  };
  if (begin < window_begin) add(begin, window_begin);
  if (end > window_end) add(window_end, end);
}

}  // namespace

std::string without_window(std::string_view maps) {
  std::string kept;
  kept.reserve(maps.size());
  while (!maps.empty()) {
    const std::size_t end = maps.find('\n');
    const std::string_view line = maps.substr(0, end == std::string_view::npos ? maps.size() : end + 1);
    add_without_window(kept, line);
    maps.remove_prefix(line.size());
  }
  return kept;
}

}  // namespace firebreak::instance
