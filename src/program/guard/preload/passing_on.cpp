// SPDX-License-Identifier: Apache-2.0
#include "program/guard/preload/passing_on.h"

#include <algorithm>

namespace firebreak::guard {
namespace {

constexpr std::string_view variable = "LD_PRELOAD=";
constexpr std::string_view separators = ": ";
constexpr std::string_view file = "/libfirebreak-guard.so";

/// Calls `take` with each library of the list.
template <class Take>
void each_library(std::string_view list, const Take& take) {
  while (!list.empty()) {
    const std::size_t end = std::min(list.find_first_of(separators), list.size());
    if (end > 0) take(list.substr(0, end));
    list.remove_prefix(std::min(end + 1, list.size()));
  }
}

}  // namespace

std::string_view preloads_in(const char* entry) {
  const std::string_view all(entry);
  return all.starts_with(variable) ? all : std::string_view();
}

bool has_guard(std::string_view preloads) {
  bool has = false;
  each_library(preloads.substr(variable.size()),
               [&](std::string_view library) { has = has || library.ends_with(file); });
  return has;
}

std::size_t without_guard(std::string_view preloads, char* into) {
  char* end = std::ranges::copy(variable, into).out;
  bool is_first = true;
  each_library(preloads.substr(variable.size()), [&](std::string_view library) {
    if (library.ends_with(file)) return;
    if (!is_first) *end++ = ':';
    end = std::ranges::copy(library, end).out;
    is_first = false;
  });
  *end = '\0';
  return is_first ? 0 : static_cast<std::size_t>(end - into);
}

}  // namespace firebreak::guard
