// SPDX-License-Identifier: Apache-2.0
/// Whether one opening of a file (Linux's "open file description") is there still, whoever has it: a lock of
/// one byte that belongs to the opening, and that another opening of the same file can see. It shows also
/// what /proc does not: a descriptor that is on its way through a socket, one that only a mapping or a driver
/// keeps.
///
/// Linux takes the lock away just before it has the driver release the file. So a lock that is there proves
/// that somebody has the opening; one that is gone proves that nobody can get at it any more, and that the
/// release has begun. That it has ended is known only of a close() of one's own that was the last, and of a
/// process that has ended since.
#pragma once

#include <cstdint>

#include "base/result.h"
#include "os/fd.h"

namespace firebreak::os {

/// The byte that tells this opening from all others of its file.
using OpeningMark = std::uint64_t;

/// Marks the opening behind a descriptor for as long as it lives, whoever closes his duplicate first.
/// PermissionDenied: the descriptor is not for writing. Unavailable: no byte is to be had.
Result<OpeningMark> mark_opening(int fd);

/// Whether the opening with that mark lives; `fd` is another opening of the same file.
Result<bool> is_marked(int fd, OpeningMark mark);

}  // namespace firebreak::os
