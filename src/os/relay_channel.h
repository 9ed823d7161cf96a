// SPDX-License-Identifier: Apache-2.0
/// A descriptor for a child to write to, whose text goes through our hands before it reaches one of ours.
#pragma once

#include <cstddef>
#include <span>

#include "base/result.h"
#include "os/fd.h"

namespace firebreak::os {

struct RelayChannel {
  Fd ours;    ///< to be read; does not block. An error of read(), as well as 0, is the end
  Fd theirs;  ///< to be written
};

/// A terminal where descriptor `number` is one, of the same size, that leaves every byte as it is; else a
/// pipe.
Result<RelayChannel> channel_like(int number);

/// Writes everything, waiting as long as that takes. Protocol: nobody reads there any more (never a SIGPIPE,
/// if this thread holds it back).
Status write_all(int number, std::span<const std::byte> bytes);

}  // namespace firebreak::os
