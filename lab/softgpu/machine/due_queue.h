// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <utility>

namespace firebreak::softgpu {

/// Things that are to show at a time, in that order; equal times in the order of adding.
template <class T>
class DueQueue {
 public:
  void add(std::int64_t due_ns, T item) { items_.emplace(due_ns, std::move(item)); }
  /// The first item if it is due.
  const T* due(std::int64_t now_ns) const {
    return items_.empty() || items_.begin()->first > now_ns ? nullptr : &items_.begin()->second;
  }
  void remove_first() { items_.erase(items_.begin()); }
  std::optional<std::int64_t> next_due_ns() const {
    return items_.empty() ? std::nullopt : std::optional(items_.begin()->first);
  }

 private:
  std::multimap<std::int64_t, T> items_;
};

}  // namespace firebreak::softgpu
