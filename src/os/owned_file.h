// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <sys/types.h>

#include <string>
#include <string_view>

#include "base/result.h"

namespace firebreak::os {

/// Writes a file that nobody but `owner`, and root, can read (mode 0600). All of it at once: there is the old
/// file or the new one, and no moment in which somebody else could read it. PermissionDenied: the folder is
/// not ours, or a link, or others may write it, or we may not give files away.
Status replace_owned_file(const std::string& folder, const std::string& name, std::string_view content,
                          uid_t owner);

}  // namespace firebreak::os
