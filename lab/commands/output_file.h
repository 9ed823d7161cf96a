// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>

#include "ground/base/result.h"

namespace firebreak::commands {

/// Replaces the file at `path`; an empty path, as of an option that was not given, asks for none.
Status write_file(const std::string& path, const std::string& text);

}  // namespace firebreak::commands
