// SPDX-License-Identifier: Apache-2.0
/// A memory cgroup with a limit: whoever takes more meets Linux's out-of-memory killer.
#pragma once

#include <sys/types.h>

#include <cstddef>
#include <string>
#include <utility>

#include "ground/base/result.h"

namespace firebreak::tests {

class MemoryGroup {
 public:
  /// Unsupported: this machine has none that we may write to.
  static Result<MemoryGroup> create(std::size_t limit_mib);
  MemoryGroup(MemoryGroup&& other) noexcept : path_(std::exchange(other.path_, {})) {}
  MemoryGroup& operator=(MemoryGroup&&) = delete;
  /// Once nobody is in it any more.
  ~MemoryGroup();

  Status take_in(pid_t pid) const;

 private:
  explicit MemoryGroup(std::string path) : path_(std::move(path)) {}

  std::string path_;
};

}  // namespace firebreak::tests
