// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>

#include "base/result.h"

namespace firebreak::os {

/// A symbol of a shared library that is loaded for it and never unloaded. A name without a slash is looked
/// for as the calling library's or program's run path and the system say. NotFound: no such library, or no
/// such symbol.
Result<void*> load_symbol(const std::string& library, const char* symbol);

}  // namespace firebreak::os
