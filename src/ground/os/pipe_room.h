// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>

#include "ground/base/result.h"
#include "ground/os/fd.h"

namespace firebreak::os {

/// Whether a pipe, by its reading end, has no room left, so that whoever writes into it stands still. What
/// waits in it stays there. Never waits. False also where it cannot be seen.
bool is_pipe_full(const Fd& reading);

/// Throws away what waits in a pipe, at most so many bytes, without a copy of it. Returns how many; 0: nobody
/// writes any more. Never waits. Unavailable: it is empty.
Result<std::size_t> discard_from_pipe(const Fd& reading, std::size_t bytes_max);

}  // namespace firebreak::os
