// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <sys/types.h>

#include <compare>

#include "base/result.h"

namespace firebreak::os {

/// One file, whatever it is called. All zero: none, as behind anonymous memory.
struct FileIdentity {
  dev_t device = 0;
  ino_t number = 0;
  auto operator<=>(const FileIdentity&) const = default;
};

/// Of the file behind a descriptor.
Result<FileIdentity> identity_of(int fd);

}  // namespace firebreak::os
