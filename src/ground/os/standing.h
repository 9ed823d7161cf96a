// SPDX-License-Identifier: Apache-2.0
/// The user and groups of this process as files see them; it may change them while it runs.
#pragma once

#include <sys/types.h>

#include "ground/os/file.h"

namespace firebreak::os {

struct Standing {
  uid_t user = 0;  ///< the effective one
  FileIdentity root;
  bool operator==(const Standing&) const = default;
};

/// Returns the standing of the calling thread. The C library's functions change that of all threads.
Standing own_standing();

}  // namespace firebreak::os
