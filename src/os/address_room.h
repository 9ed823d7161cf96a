// SPDX-License-Identifier: Apache-2.0
/// What Linux still wants to do with addresses of this process that nobody has mapped.
#pragma once

#include <cstdint>
#include <optional>
#include <vector>

#include "os/device_range.h"

namespace firebreak::os {

/// Where the heap (brk) and the first thread's stack may grow into.
std::vector<AddressRange> room_to_grow();

/// What is left of RLIMIT_AS; empty: there is no such limit.
std::optional<std::uint64_t> address_space_left();

/// Nothing is mapped there any more.
void release_range(AddressRange range);

}  // namespace firebreak::os
