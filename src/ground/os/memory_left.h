// SPDX-License-Identifier: Apache-2.0
/// How much memory this process may still take, before Linux ends somebody for it.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace firebreak::os {

/// The memory that the machine and every control group around this process still have. Empty: Linux does not
/// say.
std::optional<std::uint64_t> memory_left_bytes();

// --- pure

/// The line MemAvailable of /proc/meminfo.
std::optional<std::uint64_t> available_in(std::string_view meminfo);
/// The folders of the group in which /proc/self/cgroup says that a process is, from within to without; of the
/// second version of control groups.
std::vector<std::string> group_folders_in(std::string_view proc_cgroup);
/// What a group leaves: by its files memory.max and memory.current. Empty: it has no limit.
std::optional<std::uint64_t> left_in_group(std::string_view max, std::string_view current);

}  // namespace firebreak::os
