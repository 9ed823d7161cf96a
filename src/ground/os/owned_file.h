// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <sys/types.h>

#include <functional>
#include <string>
#include <string_view>

#include "ground/base/result.h"
#include "ground/os/fd.h"

namespace firebreak::os {

/// Writes a file that nobody but `owner`, and root, can read (mode 0600). All of it at once: there is the old
/// file or the new one, and no moment in which somebody else could read it. PermissionDenied: the folder is
/// not ours, or a link, or others may write it, or we may not give files away.
/// `give`: gives it to another user; empty: we do.
Status replace_owned_file(const std::string& folder, const std::string& name, std::string_view content,
                          uid_t owner, const std::function<Status(const Fd& file, uid_t user)>& give = {});

}  // namespace firebreak::os
