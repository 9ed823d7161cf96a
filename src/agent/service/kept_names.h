// SPDX-License-Identifier: Apache-2.0
/// The names under which a service manager keeps descriptors. It gives all of them to the next agent in one
/// variable of its environment (LISTEN_FDNAMES), and Linux starts no program with one of more than 128 KiB.
#pragma once

#include <cstddef>
#include <functional>
#include <set>
#include <span>
#include <string>
#include <string_view>

#include "ground/base/result.h"

namespace firebreak::agent {

class KeptNames {
 public:
  /// Room for names, with a separator each. The rest of 128 KiB is for names that we do not give: shelves'
  /// and others'.
  static constexpr std::size_t most_bytes = std::size_t{120} * 1024;

  /// ResourceExhausted, with how many there are: no room for all of them. Those that are there take none.
  Status room_for(std::span<const std::string> names) const;
  void add(const std::string& name);
  void remove(std::string_view name);
  std::size_t bytes() const { return bytes_; }

 private:
  std::set<std::string, std::less<>> names_;
  std::size_t bytes_ = 0;
};

}  // namespace firebreak::agent
