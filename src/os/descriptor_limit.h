// SPDX-License-Identifier: Apache-2.0
/// How many descriptors this process may have, and has.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>

#include "base/result.h"

namespace firebreak::os {

/// RLIMIT_NOFILE.
struct DescriptorLimit {
  std::uint64_t soft = 0;
  std::uint64_t hard = 0;
  friend bool operator==(const DescriptorLimit&, const DescriptorLimit&) = default;
};

Result<DescriptorLimit> descriptor_limit();

/// As many as this process may have: the hard limit, which root raises first, as far as fs.nr_open allows;
/// and no more than `most`. Programs that it starts afterwards (spawn_process) get the limit that it had
/// itself, since those that use select() cannot have more than 1,024. Before other threads start; once.
Result<DescriptorLimit> raise_descriptor_limit(std::uint64_t most = std::uint64_t{1} << 20);

/// What spawn_process gives back; empty: nothing was raised.
std::optional<DescriptorLimit> descriptor_limit_of_children();

/// That this process can open so many more: where its limit is in the way it becomes twice what it was, or as
/// much more as is needed and the hard limit allows. Whoever does without is never given another limit, since
/// programs that use select() cannot have more than 1,024; programs that it starts inherit it.
/// ResourceExhausted: the hard limit does not allow it; what it is. Any thread.
Status make_room_for_descriptors(std::uint64_t count);

/// How many are open.
Result<std::size_t> open_descriptors();

}  // namespace firebreak::os
