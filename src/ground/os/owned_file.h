// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <sys/types.h>

#include <string>
#include <string_view>

#include "ground/base/result.h"
#include "ground/os/fd.h"

namespace firebreak::os {

/// Writes a file that we alone write, and nobody but `reader`, and root, can read besides (an access control
/// list; we stay its owner, since an owner can let himself write). All of it at once: there is the old file
/// or the new one, and no moment in which somebody else could read it. Where the file system has no such
/// lists `reader` cannot read it. PermissionDenied: the folder is not ours, or a link, or others may write
/// it.
Status replace_owned_file(const std::string& folder, const std::string& name, std::string_view content,
                          uid_t reader);

/// Lets that user read a file of ours (acl(5)). Unsupported: its file system has no access control lists.
Status let_user_read(const Fd& file, uid_t user);
/// False: files there are read by those alone whom owner, group and mode name.
bool has_access_lists(const std::string& path);
/// Returns the user whom let_user_read() has let read that file; where it is nobody, its owner.
Result<uid_t> reader_of(const std::string& path);

}  // namespace firebreak::os
