// SPDX-License-Identifier: Apache-2.0
/// poll() without its traps; what every Kernel and the leaf helpers wait with.
#pragma once

#include <chrono>
#include <span>
#include <vector>

#include "base/result.h"

namespace firebreak::os {

/// Indices of the descriptors that are readable or hung up; empty after `timeout` (negative: for ever).
Result<std::vector<std::size_t>> poll_readable(std::span<const int> fds, std::chrono::milliseconds timeout);

/// Whether `fd` is writable within `timeout` (negative: for ever).
Result<bool> poll_writable(int fd, std::chrono::milliseconds timeout);

}  // namespace firebreak::os
