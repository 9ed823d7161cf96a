// SPDX-License-Identifier: Apache-2.0
/// Small files that one user's programs leave for each other until the next boot, and that no other user can
/// write or plant.
#pragma once

#include <string>

#include "base/result.h"

namespace firebreak::os {

/// The folder for them: XDG_RUNTIME_DIR/firebreak; without that variable /run/firebreak for root and
/// /tmp/firebreak-UID for everybody else. It need not be there.
std::string runtime_folder();

/// PermissionDenied: the file or its folder is not ours (or root's), or others may write it, or it is no
/// regular file; then its content proves nothing. NotFound: there is none.
Result<std::string> read_runtime_file(const std::string& folder, const std::string& name);

/// All of it at once: readers see the old content or the new. Makes the folder, for us alone.
/// PermissionDenied: the folder is not ours, or others may write it.
Status replace_runtime_file(const std::string& folder, const std::string& name, const std::string& content);

}  // namespace firebreak::os
