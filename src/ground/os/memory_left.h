// SPDX-License-Identifier: Apache-2.0
/// How much memory this process may still take, before Linux ends somebody for it; and much of it at once.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "ground/base/result.h"

namespace firebreak::os {

/// The memory that the machine and every control group around this process still have. Empty: Linux does not
/// say.
std::optional<std::uint64_t> memory_left_bytes();

/// Zeroed memory of this process alone, which its children do not get, in large pages where Linux has some.
/// Memory is taken where it is first written. Movable, not copyable.
class OwnMemory {
 public:
  /// ResourceExhausted: there is no room for it.
  static Result<OwnMemory> of(std::size_t size_bytes);
  OwnMemory(OwnMemory&& other) noexcept
      : begin_(std::exchange(other.begin_, nullptr)), size_bytes_(std::exchange(other.size_bytes_, 0)) {}
  OwnMemory& operator=(OwnMemory&& other) noexcept {
    std::swap(begin_, other.begin_);
    std::swap(size_bytes_, other.size_bytes_);
    return *this;
  }
  OwnMemory(const OwnMemory&) = delete;
  OwnMemory& operator=(const OwnMemory&) = delete;
  ~OwnMemory();

  std::byte* begin() const { return begin_; }

 private:
  OwnMemory(std::byte* begin, std::size_t size_bytes) : begin_(begin), size_bytes_(size_bytes) {}

  std::byte* begin_ = nullptr;
  std::size_t size_bytes_ = 0;
};

// --- pure

/// The line MemAvailable of /proc/meminfo.
std::optional<std::uint64_t> available_in(std::string_view meminfo);
/// The folders of the group in which /proc/self/cgroup says that a process is, from within to without; of the
/// second version of control groups.
std::vector<std::string> group_folders_in(std::string_view proc_cgroup);
/// What a group leaves: by its files memory.max and memory.current. Empty: it has no limit.
std::optional<std::uint64_t> left_in_group(std::string_view max, std::string_view current);

}  // namespace firebreak::os
