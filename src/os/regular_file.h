// SPDX-License-Identifier: Apache-2.0
/// Regular files, whatever their names: which one it is, and where a descriptor of it stands.
#pragma once

#include <string>

#include "os/file_identity.h"
#include "os/kernel.h"

namespace firebreak::os {

/// Unsupported: `path` is something else, a pipe or a terminal, or follows to one. It is not opened for that.
Result<FileIdentity> regular_file_at(Kernel& kernel, const std::string& path);

/// Opens it for reading, without blocking, from its beginning; with an offset of our own, whoever else holds
/// it. Unsupported as above.
Result<Fd> open_regular_file(Kernel& kernel, const std::string& path);

/// Moves the descriptor's place; returns where that is, in bytes from the file's beginning.
Result<std::size_t> go_to_end(int fd);
Status go_to_beginning(int fd);

}  // namespace firebreak::os
