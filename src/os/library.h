// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>

#include "base/result.h"

namespace firebreak::os {

/// A symbol of a shared library that is loaded for it and never unloaded. A name without a slash is looked
/// for as the calling library's or program's run path and the system say. NotFound: no such library, or no
/// such symbol.
Result<void*> load_symbol(const std::string& library, const char* symbol);

/// The path of the shared library or program that a function is part of. NotFound: of none.
Result<std::string> library_of(const void* function);

/// The path, in the folder of the shared library or program that this code is part of, of its neighbour
/// `name`. A run path would do where nobody stands between us and dlopen(); the sanitizers do. Just the name
/// where our own path is not known.
std::string beside_this_library(const std::string& name);

}  // namespace firebreak::os
