// SPDX-License-Identifier: Apache-2.0
#include "kernels/ptx/names.h"

#include <algorithm>
#include <charconv>

namespace firebreak::ptx {
namespace {

bool is_digit(char c) { return c >= '0' && c <= '9'; }

}  // namespace

bool NameScopes::declare(std::string_view name, const NameEntry& entry) {
  Scope& scope = scopes_.back();
  return find_range(scope, name) == nullptr && scope.exact.emplace(name, entry).second;
}

bool NameScopes::declare_range(std::string_view prefix, std::uint32_t count, Type type) {
  return scopes_.back().ranges.emplace(prefix, Range{count, type}).second;
}

NameEntry* NameScopes::find(std::string_view name) {
  for (auto scope = scopes_.rbegin(); scope != scopes_.rend(); ++scope) {
    if (const auto found = scope->exact.find(name); found != scope->exact.end()) return &found->second;
    if (const Range* range = find_range(*scope, name)) {
      const NameEntry entry{NameKind::Register, range->type, {}, no_index};
      return &scope->exact.emplace(name, entry).first->second;
    }
  }
  return nullptr;
}

// %r12 belongs to %r<13> or to %r1<3>: every split of the digits is tried.
const NameScopes::Range* NameScopes::find_range(const Scope& scope, std::string_view name) {
  constexpr std::size_t most_digits = 7;
  if (scope.ranges.empty()) return nullptr;
  for (std::size_t digits = 1; digits <= std::min(most_digits, name.size()); ++digits) {
    const std::string_view number = name.substr(name.size() - digits);
    if (!is_digit(number.front())) break;
    if (number.front() == '0' && digits > 1) continue;
    const auto found = scope.ranges.find(name.substr(0, name.size() - digits));
    std::uint32_t value = 0;
    std::from_chars(number.data(), number.data() + number.size(), value);
    if (found != scope.ranges.end() && value < found->second.count) return &found->second;
  }
  return nullptr;
}

void LabelScopes::close(Function& function) {
  const Scope scope = std::move(scopes_.back());
  scopes_.pop_back();
  std::vector<LabelUse>& outer = scopes_.empty() ? undefined_ : scopes_.back().uses;
  for (const LabelUse& use : scope.uses) {
    const auto label = scope.labels.find(use.name);
    if (label == scope.labels.end()) {
      outer.push_back(use);
    } else if (use.is_table) {
      function.branch_tables[use.first].targets[use.second] = label->second;
    } else {
      function.instructions[use.first].operands[use.second].target = label->second;
    }
  }
}

bool LabelScopes::define(std::string_view name, std::uint32_t target) {
  return scopes_.back().labels.emplace(name, target).second;
}

Finding LabelScopes::undefined() const {
  if (undefined_.empty()) return std::nullopt;
  const LabelUse& use = undefined_.front();
  return complain(use.location, "label " + quoted(use.name) + " is not defined");
}

}  // namespace firebreak::ptx
